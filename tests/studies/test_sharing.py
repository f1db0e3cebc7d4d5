"""One encoder for three tasks: the study's cells, their teachers, and its page."""

import json

import pytest
from cell_files import keep_seeds

from multitask.config_tasks import without_paths
from multitask.settings.config import RunConfig
from studies.cost import left_runs
from studies.results import Cell, Results
from studies.sharing import (
    MEANING,
    members,
    systems,
)
from studies.sharing_cells import (
    CROSSED,
    SEEDS,
    cells,
)
from studies.study import Report, StudyRequest
from tasks import CS224N

TAUGHT = "cross-teachers"
BASE = RunConfig(mode="single", tasks=(), encoder="tiny")


@pytest.fixture
def every(tmp_path) -> dict[str, Cell]:
    request = StudyRequest(BASE, tmp_path / "sharing", tmp_path / "runs")
    return {one.name: one for one in cells(request)}


def test_runs_learn_from_single_tasks_and_cross_encoders_of_their_tasks(every, tmp_path):
    config = every[TAUGHT].run_config(2, tmp_path)
    names = ["sst", *(f"cross-{task}" for task in CROSSED)]
    runs = [f"{name}-seed11711" for name in names]
    assert config.teacher == tuple(str(tmp_path / run) for run in runs)
    assert every[TAUGHT].config.teacher == tuple(runs)
    assert [one.name for one in every[TAUGHT].teachers] == names
    assert not any(every[name].config.teacher for name in (*CS224N, "joint-pcgrad"))
    joint = every["cross-qqp"].config
    assert joint.to_json()["tasks"] == [{"name": "qqp", "pair": "joint"}]


def test_every_row_has_its_meaning(every, tmp_path):
    report = Report(
        Results(tmp_path), StudyRequest(BASE, tmp_path, tmp_path), [*every.values()], ()
    )
    assert {*members(report)} == {*MEANING}


def test_teachers_are_run_first_and_once(every, tmp_path):
    left = left_runs([every[TAUGHT], every["teachers"]], Results(tmp_path), tmp_path)
    names = [one.name for one, _ in left]
    assert names.index("cross-qqp") < names.index(TAUGHT)
    counts = {one.name: len(seeds) for one, seeds in left}
    assert counts == {
        **dict.fromkeys((*CS224N, "cross-qqp", "cross-sts"), 1),
        **dict.fromkeys((TAUGHT, "teachers"), len(SEEDS)),
    }


@pytest.mark.slow
def test_the_table(reproducing, tmp_path, capsys):
    flags = ("--encoder", "tiny", "--limit", 24, "--epochs", 1, "--precision", "fp32")
    small = reproducing("sharing", *flags)
    rows = ("--rows", *CS224N, "one-task-per-step", "teachers")
    status, shown = small(*rows, "--seeds", 1)
    assert status == 0, shown.err
    text = (tmp_path / "sharing.md").read_text()
    assert text.count("| singles |") == text.count("| one-task-per-step |") == 3
    cell = json.loads((tmp_path / "sharing" / "teachers.json").read_text())
    assert cell["config"]["teacher"][0] == "sst-seed11711"
    assert cell["seeds"]["11711"]["encode_ms"] > 0


def test_systems_have_all_their_runs(every, tmp_path):
    figures: dict[str, dict] = {"dev": {}}
    report = Report(
        Results(tmp_path), StudyRequest(BASE, tmp_path, tmp_path), [*every.values()], ()
    )
    for name, seeds in {"sst": (11711, 1), "qqp": (1, 2), "joint-sum": (2,)}.items():
        content = {str(seed): figures for seed in seeds}
        keep_seeds(tmp_path / f"{name}.json", without_paths(every[name].config), content)
    assert list(systems(report)) == ["joint-sum"]
    keep_seeds(tmp_path / "sts.json", without_paths(every["sts"].config), {"1": figures})
    assert {title: list(one) for title, one in systems(report).items()} == {
        "singles": [1],
        "joint-sum": [2],
    }
