"""The study of branches: its cells, random layers, and the share of the gap that they close."""

from dataclasses import replace

import pytest
from cell_files import keep_seeds

from common.errors import SettingsError
from multitask.settings.config import RunConfig
from multitask.storage.stored_config import without_paths
from studies import branching
from studies.branching import (
    LAYERS,
    SEEDS,
    STUDY,
    cells,
    claims,
    closed,
    drawn_layers,
    page,
    scores,
)
from studies.results import Results
from studies.study import Report, StudyRequest

DRAWN = [(1, 2, 5), (1, 3, 5), (3, 4, 6), (3, 5, 6), (1, 2, 3)]
BASE = RunConfig(mode="single", tasks=(), encoder="minilm")


@pytest.fixture
def report(tmp_path):
    request = StudyRequest(BASE, tmp_path / "branching", tmp_path / "runs")
    request.results.mkdir()
    every = cells(request)
    return Report(Results(request.results), request, every, every)


def keep(report, name, by_seed, parameters=100, adapter=0):
    """Store the STS scores of a cell by seed."""
    one = report.cell(name)
    config = without_paths(one.config)
    counts = {"shared": parameters, "tasks": {"sts": {"head": 1, "adapter": adapter}}}
    figures = {
        str(seed): {
            "dev": {"sts": {"pearson": score}},
            "parameters": counts,
            "layers": [1],
        }
        for seed, score in by_seed.items()
    }
    keep_seeds(report.results.file(one), config, figures)


def test_every_branch_starts_from_the_joint_run_and_belongs_to_similarity(report, tmp_path):
    rows = [one for one in report.cells if one.name not in ("joint", "single")]
    assert {one.name.split("-")[0] for one in rows} == {"shared", "conflict", "top", "random"}
    for one in rows:
        config = one.run_config(one.seeds[0], tmp_path)
        assert config.init == str(tmp_path / f"joint-seed{one.seeds[0]}")
        assert (config.adapter is None) == (one.name == "shared")
        assert config.adapter is None or config.adapter.only == ("sts",)
    epochs = {one.name.split("-")[0]: one.config.epochs for one in report.cells}
    assert epochs["single"] == epochs["joint"] + epochs["shared"] == epochs["joint"] + epochs["top"]


def test_random_layers_are_as_many_others_for_each_seed():
    drawn = [drawn_layers(seed, 6) for seed in SEEDS]
    assert all(len(set(one)) == LAYERS and 1 <= min(one) <= max(one) <= 6 for one in drawn)
    assert len(set(drawn)) > 1
    assert drawn == DRAWN


def test_the_closed_share_is_that_of_the_common_seeds(report):
    keep(report, "single", {11711: 0.9, 1: 0.8, 2: 0.1})
    keep(report, "shared", {11711: 0.8, 1: 0.7})
    keep(report, "top", {11711: 0.85, 1: 0.75, 2: 0.0}, adapter=23)
    assert closed(report, "top") == "50%"
    assert closed(report, "shared") == closed(report, "conflict") == ""
    keep(report, "random-1", {1: 0.8})
    keep(report, "random-11711", {11711: 0.9})
    assert scores(report, "random") == {1: 0.8, 11711: 0.9}
    assert closed(report, "random") == "100%"
    text = "\n".join(page(report))
    (top,) = [line for line in text.splitlines() if "branches in the top layers" in line]
    assert top.startswith("| branches in the top layers | 1 | 3 |")
    assert top.endswith("| 1.23 | 50% |")
    assert "conflict - top" in {test.what for claim in claims(report) for test in claim.tests}


def test_a_shared_model_above_the_single_one_has_no_gap(report):
    keep(report, "single", {1: 0.7})
    keep(report, "shared", {1: 0.8})
    keep(report, "top", {1: 0.9})
    assert closed(report, "top") == "no gap"


def test_rows_have_titles(report):
    names = {one.name.split("-")[0] for one in report.cells} - {branching.JOINT}
    assert names == set(branching.TITLES)


def test_random_layers_are_trained_for_the_requested_seeds_only(report):
    wanted = {one.name for one in report.cells if STUDY.is_wanted(one, report.request)}
    assert wanted == {one.name for one in report.cells}
    several = [name for name in sorted(wanted) if name.startswith("random-")]
    two = replace(report.request, seeds=2, rows=(*several, "top"))
    assert [one.name for one in report.cells if STUDY.is_wanted(one, two)] == [
        "top",
        "random-11711",
        "random-1",
    ]


def test_an_encoder_with_too_few_layers_is_refused(report):
    small = replace(report.request, base=BASE.changed(encoder="tiny"))
    with pytest.raises(SettingsError, match="expected more than 3 layers, found 2"):
        STUDY.check(small)
