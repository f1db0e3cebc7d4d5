"""--objective: contrastive terms in single and multi-task runs, and what contradicts them."""

import json

import pytest

from cli import objective
from tasks import TASK_NAMES, build_task
from tasks.contrastive import LOSSES

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")
ALL = ("--mode", "multitask", "--encoder", "tiny", "--epochs", "1")


def test_plain_names_are_the_registries():
    assert set(objective.OBJECTIVES) == {"ce", *LOSSES}
    without = {name for name in TASK_NAMES if build_task(name).kind.classes is None}
    assert set(objective.WITHOUT_CLASSES) == without


@pytest.mark.parametrize(
    ("flags", "config"),
    [
        (("--objective", "scl", "--scl-weight", "0.9"), {"objective": "scl", "scl_weight": 0.9}),
        (
            ("--objective", "ls", "--scl-preference", "0.25", "--per-class"),
            {"scl_preference": [0.25, 0.75], "per_class": True, "gradients": "parameters"},
        ),
        (
            ("--objective", "epo", "--scl-inputs", "combined"),
            {"objective": "epo", "scl_inputs": "combined", "gradients": "representation"},
        ),
        (("--objective", "epo", "--gradients", "parameters"), {"gradients": "parameters"}),
        (("--objective", "ce"), {"objective": None}),
    ],
)
def test_runs_of_one_task(run, data, tmp_path, flags, config):
    found = run(*SST, "--data", data, *flags, "--output", tmp_path / "run")
    assert found.returncode == 0, found.stderr
    kept = json.loads((tmp_path / "run" / "config.json").read_text())
    assert {key: kept[key] for key in config} == config


def test_a_multi_task_run_with_surgery_between_the_tasks(run, data, tmp_path):
    flags = ("--objective", "epo", "--pcgrad")
    found = run(*ALL, "--data", data, *flags, "--output", tmp_path / "run")
    assert found.returncode == 0, found.stderr
    lines = (tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()
    names = list(json.loads(lines[0])["weights"])
    assert names[:3] == ["sst/cross_entropy", "sst/pull", "sst/push"]
    assert names[-1] == "sts"
    assert "steps: " in found.stdout


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((*SST, "--scl-weight", "0.5"), "expected --objective scl or ls or epo, found ce"),
        ((*SST, "--objective", "scl", "--scl-preference", "0.5"), "ls or epo, found scl"),
        ((*SST, "--objective", "ls", "--scl-inputs", "combined"), "expected --objective epo"),
        ((*SST, "--objective", "epo", "--scl-preference", "0"), "between 0 and 1 for EPO"),
        ((*SST, "--objective", "ls", "--freeze-encoder"), "move nothing but the encoder"),
        (("--mode", "single", "--task", "sts", "--per-class"), "a task with classes, found sts"),
        (("--mode", "single", "--task", "sts", "--objective", "ls"), "found sts alone"),
        (
            (*ALL, "--objective", "ls", "--qqp-loss", "with-contrastive"),
            "--objective ls and --qqp-loss with-contrastive: expected one of them",
        ),
        (
            (*ALL, "--objective", "epo", "--gradients", "representation"),
            "expected one task with several objectives",
        ),
        ((*SST, "--objective", "epo", "--combiner", "pcgrad"), "two objectives or more"),
    ],
)
def test_contradictions(refused, flags, expected):
    assert expected in refused(2, *flags)
