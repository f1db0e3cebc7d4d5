"""Mode ensemble: finished runs are merged; other folders are kept."""

from pathlib import Path

import numpy as np
import pytest
from run_files import metrics
from scored_runs import scored_run

from tasks import build_task
from tasks.predictions import read_scores, scores_name


@pytest.fixture
def make_run(tmp_path):
    """`make_run(name, *tasks)` writes scores as a finished run does."""

    def make(name, *tasks):
        place, seed = tmp_path / name, len(name) + ord(name[-1])
        return str(scored_run(place, tasks, 0.1, seed, splits=("dev", "test")))

    return make


@pytest.fixture
def members(make_run):
    """Three runs of sst."""
    return [make_run(name, "sst") for name in "abc"]


@pytest.fixture
def ensemble(tmp_path, run_ok):
    """`ensemble(*runs and flags)`: folder and standard output of their ensemble."""

    def merge(*argv, output="ensemble"):
        result = run_ok("--mode", "ensemble", "--runs", *argv, "--output", tmp_path / output)
        return tmp_path / output, result.stdout

    return merge


def dev_scores(folder):
    return read_scores(folder / "predictions" / scores_name("sst", "dev"))


def test_tasks_may_have_different_members(make_run, ensemble):
    every = make_run("every", "sst", "qqp", "sts")
    sst, other = make_run("sst", "sst"), make_run("other", "sst", "sts")
    folder, text = ensemble(every, sst, f"sts={other}")
    stored = metrics(folder)
    by_task = {task: list(part["weights"]) for task, part in stored["members"].items()}
    assert by_task == {"sst": ["every", "sst"], "qqp": ["every"], "sts": ["every", "other"]}
    assert 0 < stored["dev"]["overall"] < 1
    assert "gain on the best" in text
    assert len(list((folder / "predictions").iterdir())) == 12
    for task in ("sst", "qqp", "sts"):
        output = build_task(task).output
        for split in ("dev", "test"):
            lines = (folder / "predictions" / output.name(split)).read_text().splitlines()
            table = read_scores(folder / "predictions" / scores_name(task, split))
            rows = zip(table.ids, map(output.show, table.predictions), strict=True)
            assert lines == [f"id \t {output.column} ", *(f"{id} , {value} " for id, value in rows)]


def test_folders_of_others_are_kept(members, ensemble, error_line, tmp_path):
    folder, _ = ensemble(*members, "--method", "greedy")
    files = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    ensemble(*members, "--method", "greedy")
    assert files == {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    line = error_line(1, "--mode", "ensemble", "--runs", members[0], "--output", folder)
    assert "holds a run with another " in line
    assert files == {path: path.read_bytes() for path in files}
    ensemble(members[0], "--overwrite")
    assert list(metrics(folder)["members"]["sst"]["weights"]) == ["a"]
    command = ("--mode", "ensemble", "--runs", *members, "--overwrite", "--output", tmp_path / "a")
    assert "this is the folder of a member" in error_line(1, *command)
    assert (tmp_path / "a" / "predictions" / scores_name("sst", "dev")).exists()


@pytest.mark.parametrize(
    ("argv", "status", "expected"),
    [
        (["sst=qqp-run"], 2, "the run has no task sst, only qqp"),
        (["qqp-run", "qqp-run"], 2, "qqp-run is named twice for qqp"),
        (["nowhere"], 1, "nowhere: there is no run in this folder"),
        (["unfinished"], 1, "unfinished: the run is not finished (no metrics.json)"),
    ],
)
def test_runs_that_cannot_be_merged_are_refused(make_run, cwd, error_line, argv, status, expected):
    make_run("qqp-run", "qqp")
    Path(make_run("unfinished", "sst"), "metrics.json").unlink()
    assert expected in error_line(status, "--mode", "ensemble", "--runs", *argv)
    assert not (cwd / "runs").exists()


def test_votes_are_the_predictions_of_an_ensemble_of_ensembles(members, ensemble):
    folder, _ = ensemble(*members)
    voted = dev_scores(folder)
    assert (voted.predictions != voted.values.argmax(1)).any()  # or this test could not fail
    again, _ = ensemble(folder, output="again")
    file = "predictions/sst-dev-output.csv"
    assert (again / file).read_bytes() == (folder / file).read_bytes()


def test_examples_that_selected_a_member_have_no_part_in_later_metrics(members, ensemble):
    greedy, _ = ensemble(*members, "--method", "greedy", output="greedy")
    marks = dev_scores(greedy).selected_on
    assert marks.sum() == 40
    folder, text = ensemble(greedy, members[0])
    merged = metrics(folder)["members"]["sst"]
    assert (merged["selected_on_examples"], merged["reported_examples"]) == (40, 40)
    assert merged["dev"]["greedy"] == metrics(greedy)["dev"]["sst"]
    assert "40 dev examples selected members" in text
    np.testing.assert_array_equal(dev_scores(folder).selected_on, marks)
