"""Ways to mix and combine, through the command line: whole small runs, and their sweep."""

import json

import pytest
from run_files import metrics

TINY = ("--mode", "multitask", "--encoder", "tiny", "--epochs", "2", "--steps-per-epoch", "3")

CHOICES = {
    "hybrid": ["--sampling", "hybrid", "--first-task", "qqp", "--combiner", "uncertainty"],
    "one task first": ["--schedule", "first-then-joint", "--first-task", "qqp"],
    "a step a task": ["--schedule", "individual", "--sampling", "temperature", "--size-cap", "30"],
    "cones": ["--combiner", "pareto-mtl", "--cones", "4", "--sampling", "square-root"],
    "upgrad": ["--combiner", "upgrad", "--sampling", "proportional"],
    "cagrad": ["--combiner", "cagrad", "--sampling", "uniform", "--micro-batch", "3"],
}


@pytest.mark.parametrize("flags", CHOICES.values(), ids=CHOICES)
def test_every_choice_trains_and_its_steps_are_recorded(flags, small, ran, tmp_path):
    ran(*TINY, *flags, "--data", small, "--output", tmp_path / "run")
    kept = metrics(tmp_path / "run")
    assert kept["steps"] == sum(kept["combiner_steps"].values())
    lines = (tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()
    assert len(lines) == kept["steps"] == 6
    for line in map(json.loads, lines):
        assert line["losses"].keys() == line["weights"].keys()
        if len(line["losses"]) > 1 and "layers" in line:
            assert list(line["layers"]) == ["embeddings", "layer 1", "layer 2"]


def test_a_preference_reaches_the_combiner(small, run, tmp_path):
    linear = ("--combiner", "linear", "--preference", "1", "0", "0", "--sampling", "round-robin")
    argv = [*TINY, *linear, "--data", small]
    assert run(*argv, "--output", tmp_path / "run").returncode == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["preference"] == [1.0, 0.0, 0.0]
    line = json.loads((tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()[0])
    assert line["weights"] == {"sst": 3.0, "qqp": 0.0, "sts": 0.0}


def test_one_task_with_two_objectives(small, ran, tmp_path):
    argv = ["--mode", "single", "--task", "qqp", "--encoder", "tiny", "--epochs", "1"]
    argv += ["--qqp-loss", "with-contrastive", "--pcgrad", "--gradients", "representation"]
    found = ran(*argv, "--data", small, "--output", tmp_path / "run")
    assert "qqp/cross_entropy and qqp/contrastive" in found.stdout


def test_a_dry_run_shows_the_plan_and_writes_nothing(small, run, ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = run(*TINY, "--sampling", "hybrid", "--data", small, "--dry-run")
    assert refused.returncode == 1
    assert "found sst 40, qqp 40, sts 40; --first-task TASK decides" in refused.stderr
    flags = ["--sampling", "hybrid", "--first-task", "sts"]
    found = ran(*TINY, *flags, "--data", small, "--dry-run")
    header, _, *rows = found.stdout[found.stdout.index("epoch ") :].splitlines()
    assert header.split()[:6] == ["epoch", "task", "examples", "passes", "batches", "steps"]
    tasks = [["1", "sts"], ["2", "sst"], ["2", "qqp"], ["2", "sts"]]
    assert [row.split()[:2] for row in rows[:4]] == tasks
    assert len(rows) == 5
    assert not list(tmp_path.glob("runs*"))


def test_keep_last_takes_the_last_epoch(small, run, tmp_path):
    argv = [*TINY, "--data", small, "--lr", "1e-9", "--head-lr", "1e-9", "--keep", "last"]
    assert run(*argv, "--output", tmp_path / "run").returncode == 0
    assert metrics(tmp_path / "run")["best_epoch"] == 2


def test_a_sweep_of_preferences_keeps_what_is_finished(small, run, ran, tmp_path):
    argv = ["--mode", "pareto", "--preferences", "2", "--encoder", "tiny", "--epochs", "1"]
    argv += ["--steps-per-epoch", "2", "--data", small, "--output", tmp_path / "sweep"]
    ran(*argv)
    kept = json.loads((tmp_path / "sweep" / "front.json").read_text())
    assert kept["objectives"] == ["sst", "sts"]
    assert len(kept["losses"]) == len(kept["preferences"]) == len(kept["non_uniformity"]) == 2
    assert (tmp_path / "sweep" / "front.png").exists()
    again = ran(*argv)
    assert again.stdout.count("holds this run, finished") == 2
    assert json.loads((tmp_path / "sweep" / "front.json").read_text()) == kept
    more = run(*argv[:3], "3", *argv[4:])
    assert more.returncode == 1
    assert "expected a sweep of 3 rays, found 2" in more.stderr
    other = run(*argv, "--seed", "2")
    assert other.returncode == 1
    assert "seed is" in other.stderr
    for ray, losses in enumerate(kept["losses"], 1):
        found = metrics(tmp_path / "sweep" / f"ray-{ray}")["training_losses"]
        assert list(found.values()) == losses


def test_a_limit_is_a_number_a_share_or_one_of_them_by_task(run):
    dry = ("--mode", "multitask", "--encoder", "tiny", "--dry-run", "--limit")
    found = run(*dry, "30", "sst=0.1", "qqp=0.5")
    for task, count in {"sst": 24, "qqp": 240, "sts": 30}.items():
        assert f"{task}: train {count}, dev 100" in found.stdout
    # The hybrid sampler begins with the largest file, though --limit makes all tasks equal.
    found = run(*dry, "20", "--sampling", "hybrid")
    header, _, first, *_ = found.stdout[found.stdout.index("epoch ") :].splitlines()
    assert (header.split()[:2], first.split()[:2]) == (["epoch", "task"], ["1", "qqp"])
