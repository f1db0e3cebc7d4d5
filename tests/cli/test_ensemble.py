"""--mode ensemble: runs on disk become one, with prediction files and a table."""

import json
from pathlib import Path

import numpy as np
import pytest

import cli
from reports.ensembles import names_of
from tasks import build_task
from tasks.predictions import Scores, read_scores, scores_name, write_scores

TARGETS = {"sst": np.arange(40) % 5, "qqp": np.arange(40) % 2, "sts": np.linspace(0, 5, 40)}


@pytest.fixture
def make_run(tmp_path):
    """`make_run(name, *tasks)` leaves scores as a finished run does."""

    def make(name, *tasks):
        folder = tmp_path / name / "predictions"
        folder.mkdir(parents=True)
        draw = np.random.default_rng(len(name) + ord(name[-1]))
        for task in tasks:
            for split in ("dev", "test"):
                ids, targets = np.array([f"{split}{i}" for i in range(40)]), TARGETS[task]
                if task == "sts":
                    scores, targets = targets + draw.normal(size=40), targets.astype(np.float32)
                else:
                    noise = draw.dirichlet(np.ones(targets.max() + 1), size=40)
                    scores = 0.1 * np.eye(targets.max() + 1)[targets] + 0.9 * noise
                labels = targets if split == "dev" else None
                write_scores(folder / scores_name(task, split), Scores(ids, scores, labels))
        return str(tmp_path / name)

    return make


@pytest.fixture
def ensemble(tmp_path, capsys):
    def call(*argv, output="ensemble"):
        folder = tmp_path / output
        status = cli.main(["--mode", "ensemble", *argv, "--output", str(folder)])
        return status, folder, capsys.readouterr()

    return call


def test_members_differ_by_task(make_run, ensemble):
    every = make_run("every", "sst", "qqp", "sts")
    sst, other = make_run("sst", "sst"), make_run("other", "sst", "sts")
    status, folder, said = ensemble("--runs", every, sst, f"sts={other}")
    assert status == 0
    found = json.loads((folder / "metrics.json").read_text())
    members = {task: list(part["weights"]) for task, part in found["members"].items()}
    assert members == {"sst": ["every", "sst"], "qqp": ["every"], "sts": ["every", "other"]}
    assert 0 < found["dev"]["overall"] < 1
    assert "gain on the best" in said.out
    files = {path.name for path in (folder / "predictions").iterdir()}
    assert len(files) == 12
    for task in ("sst", "qqp", "sts"):
        output = build_task(task).output
        for split in ("dev", "test"):
            lines = (folder / "predictions" / output.name(split)).read_text().splitlines()
            table = read_scores(folder / "predictions" / scores_name(task, split))
            shown = [
                f"{one} , {output.show(value)} "
                for one, value in zip(table.ids, table.predictions, strict=True)
            ]
            assert lines == [f"id \t {output.column} ", *shown]


def prediction_files(folder):
    return {path.name: path.read_bytes() for path in (folder / "predictions").iterdir()}


def test_the_same_command_writes_the_same_bytes(make_run, ensemble):
    command = ("--runs", *(make_run(name, "sst") for name in "abc"), "--method", "greedy")
    _, folder, _ = ensemble(*command)
    before = prediction_files(folder)
    assert ensemble(*command)[0] == 0
    assert before == prediction_files(folder)


def test_another_runs_folder_is_left_unchanged(make_run, ensemble):
    runs = [make_run(name, "sst") for name in ("a", "b")]
    _, folder, _ = ensemble("--runs", *runs)
    kept = (folder / "metrics.json").read_bytes()
    status, _, said = ensemble("--runs", runs[0])
    assert status == 1
    assert "expected this ensemble or nothing, found another run" in said.err
    assert (folder / "metrics.json").read_bytes() == kept
    assert ensemble("--runs", runs[0], "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["sst=qqp-run"], "expected a run of sst, found qqp"),
        (["qqp-run", "qqp-run"], "expected each run once for qqp"),
        (["nowhere"], "nowhere: expected a finished run, found no predictions"),
        (["unfinished"], "unfinished: expected a finished run, found no metrics.json"),
        (["qqp-run", "--seed", "3"], "--seed: expected a greedy --method"),
    ],
)
def test_runs_that_cannot_take_part(make_run, tmp_path, monkeypatch, run, argv, expected):
    make_run("qqp-run", "qqp")
    config = {"mode": "single", "tasks": ["sst"], "seed": 1}
    Path(make_run("unfinished", "sst"), "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    found = run("--mode", "ensemble", "--runs", *argv)
    assert found.returncode in (1, 2)
    assert expected in found.stderr
    assert not (tmp_path / "runs").exists()


def test_a_split_that_a_run_lacks_is_reported(make_run, ensemble, tmp_path):
    runs = [make_run(name, "sst") for name in ("a", "b")]
    (tmp_path / "b" / "predictions" / scores_name("sst", "test")).unlink()
    status, folder, said = ensemble("--runs", *runs)
    assert status == 0
    assert "sst: test skipped, no predictions found in " in said.out
    assert not (folder / "predictions" / scores_name("sst", "test")).exists()


def test_every_run_has_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names_of([Path(), Path("../other")]) == {
        tmp_path.name: Path(),
        "other": Path("../other"),
    }
    assert names_of([Path("a/x"), Path("b/x")]) == {"a/x": Path("a/x"), "b/x": Path("b/x")}


def test_votes_stay_votes_in_an_ensemble_of_ensembles(make_run, ensemble):
    runs = [make_run(name, "sst") for name in ("a", "b", "c")]
    _, folder, _ = ensemble("--runs", *runs)
    voted = read_scores(folder / "predictions" / scores_name("sst", "dev"))
    assert (voted.predictions != voted.values.argmax(1)).any()  # or this test could not fail
    _, again, _ = ensemble("--runs", str(folder), output="again")
    file = "predictions/sst-dev-output.csv"
    assert (again / file).read_bytes() == (folder / file).read_bytes()


def test_examples_that_selected_a_member_stay_left_out(make_run, ensemble):
    runs = [make_run(name, "sst") for name in ("a", "b", "c")]
    _, greedy, _ = ensemble("--runs", *runs, "--method", "greedy", output="greedy")
    marks = read_scores(greedy / "predictions" / scores_name("sst", "dev")).selected_on
    assert marks.sum() == 20
    _, folder, said = ensemble("--runs", str(greedy), runs[0])
    found = json.loads((folder / "metrics.json").read_text())["members"]["sst"]
    assert (found["selected_on_examples"], found["reported_examples"]) == (20, 20)
    greedy_alone = json.loads((greedy / "metrics.json").read_text())["dev"]["sst"]
    assert found["dev"]["greedy"] == greedy_alone
    assert "selected on 20 dev examples" in said.out
    again = read_scores(folder / "predictions" / scores_name("sst", "dev")).selected_on
    np.testing.assert_array_equal(again, marks)


def test_a_member_is_never_written_over(make_run, ensemble):
    runs = [make_run(name, "sst") for name in ("a", "b")]
    status, folder, said = ensemble("--runs", *runs, "--overwrite", output="a")
    assert status == 1
    assert "expected another --output than a member's folder" in said.err
    assert (folder / "predictions" / scores_name("sst", "dev")).exists()
