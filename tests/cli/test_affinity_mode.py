"""Mode affinity: the files that it writes, own tasks, resuming in a step, refusals."""

import json
import shlex
import signal
from pathlib import Path

import pytest
from run_files import SAMPLE, config

from multitask.loop.trainer import Trainer

SMALL = ("--encoder", "tiny", "--limit", 24, "--epochs", 2, "--batch-size", 4, "--rounds", 4)
COMMAND = ("--mode", "affinity", "--tasks", "sst", "sts", *SMALL)
pytestmark = pytest.mark.usefixtures("quick_intervals")


@pytest.fixture
def run_affinity(run_ok, small):
    return lambda *more: run_ok(*COMMAND, "--data", small, *more)


def estimates(folder):
    return json.loads((folder / "affinity.json").read_text())["estimates"]


def test_a_command_writes_json_page_figures_and_an_ordinary_run(run_affinity, tmp_path):
    folder = tmp_path / "affinity"
    shown = run_affinity("--output", folder).stdout
    assert "gains by gram (mean cosine):\ngain of " in shown
    assert "groups at most  trained together" in shown
    assert f"affinity.json, affinity.html, figures and the joint run: {folder}" in shown
    assert {path.name for path in folder.iterdir()} >= {
        *("affinity.json", "affinity.html", "figures", "joint-seed11711", "measures-seed11711")
    }
    stored = config(folder / "joint-seed11711")
    wanted = {"tasks": ["sst", "sts"], "keep": "last", "dev_limit": 100, "test_limit": 10}
    assert {key: stored[key] for key in wanted} == wanted
    again = run_affinity("--output", folder, "--estimator", "linear", "--groups", 1).stdout
    assert "holds this run, finished" in again
    assert "gains by linear (% of the loss):" in again
    assert len(estimates(folder)["gram"]["groupings"]) == 1


def test_own_tasks_and_tables_are_measured(run_ok, tmp_path, small):
    tickets = (
        "--data-file",
        SAMPLE / "own" / "tickets.csv",
        "--text",
        "text",
        "--group",
        "customer",
    )
    labels = ("--labels", "topic", "tags")
    command = ("--mode", "affinity", "--tasks", "sst", *tickets, *labels, "--data", small)
    run_ok(*command, *SMALL, "--output", tmp_path / "a")
    found = estimates(tmp_path / "a")["lookahead"]["subsets"]
    assert [list(one) for one in found][-1] == ["sst", "topic", "tags"]


def test_a_run_that_is_interrupted_in_a_step_goes_on(
    run_affinity, run, small, tmp_path, monkeypatch
):
    run_affinity("--output", tmp_path / "whole")
    taken, train_step = 0, Trainer.train_step

    def interrupted(trainer, drawn):
        nonlocal taken
        taken += 1
        if taken == 8:  # of the second epoch
            signal.raise_signal(signal.SIGINT)
        return train_step(trainer, drawn)

    monkeypatch.setattr(Trainer, "train_step", interrupted)
    stopped = run(*COMMAND, "--data", small, "--output", tmp_path / "broken")
    assert stopped.returncode == 130
    assert "interrupted; the same command goes on" in stopped.stderr
    run_affinity("--output", tmp_path / "broken")
    assert estimates(tmp_path / "broken") == estimates(tmp_path / "whole")


def test_advised_commands_run_and_compare_holds_the_promises_against_them(
    run_affinity, run_ok, error_line, tmp_path
):
    folder = tmp_path / "affinity"
    shown = run_affinity("--output", folder, "--advise", "--rounds", 4).stdout
    assert "gains over singles by gram (mean cosine)" in shown
    assert "advised: " in shown
    advice, compare = folder / "advice.json", ("--mode", "compare", "--output", tmp_path / "page")
    nothing = error_line(1, *compare, "--advice", advice)
    assert "expected finished runs of singles and of another system, found none" in nothing
    lines = [shlex.split(line) for line in (folder / "advice/commands.sh").read_text().split("\n")]
    trained = [one for one in lines if "--seed" in one and one[one.index("--seed") + 1] == "1"]
    assert {Path(one[one.index("--output") + 1]).name for one in trained} >= {
        "sst-seed1",
        "sts-seed1",
        "sst+sts-seed1",
    }
    for one in trained:
        run_ok(*one[one.index("--mode") :])
    text = run_ok(*compare, "--advice", advice).stdout
    assert "Promised and real gains" in text
    assert "one model  sts " in text
    assert "Promised and real gains" in (tmp_path / "page/comparison.html").read_text()
    settings = folder / "advice/sst.json"
    kept = settings.read_text()
    settings.write_text(kept.replace('"lr": 0.0001', '"lr": 0.0002'))
    edited = error_line(1, *compare, "--advice", advice)
    assert "sst.json: expected the advised settings, found others; --advise writes them" in edited
    settings.write_text(kept)
    trained_with = folder / "advised/sst-seed1/config.json"
    of_run = trained_with.read_text()
    trained_with.write_text(of_run.replace('"lr": 0.0001', '"lr": 0.0002'))
    assert "sst-seed1: expected the settings of" in error_line(1, *compare, "--advice", advice)
    trained_with.write_text(of_run)
    again = error_line(1, *COMMAND, "--output", folder, "--overwrite")
    assert "expected no runs of an advice, whose promises would be lost; move advised away" in again
    assert advice.exists()
    advice.write_text(advice.read_text().replace('"gain": ', '"gain": 1'))
    assert "edited" in error_line(1, *compare, "--advice", advice)
    missing = error_line(1, *compare, "--advice", tmp_path / "none.json")
    assert "expected advice.json of mode affinity --advise, found no file" in missing


def test_a_dry_run_shows_the_steps_of_the_joint_run_and_writes_nothing(run_affinity, cwd):
    shown = run_affinity("--dry-run").stdout
    assert len([line for line in shown.splitlines() if line.lstrip().startswith(("1 ", "2 "))]) >= 2
    assert not list(cwd.iterdir())


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--tasks", "sst"), "--tasks: expected two or more, found sst"),
        (("--resume",), "mode affinity always resumes"),
        (("--rounds", 3), "--rounds: expected"),
        (("--dry-run", "--rounds", 3), "--rounds: expected"),
        (("--rates", "1e-4"), "--rates: expected --advise too"),
        (("--estimator", "cosine"), "invalid choice: 'cosine'"),
        (("--freeze-encoder",), "; a flag of mode single or multitask"),
        (("--keep", "best"), "; a flag of mode single, multitask, pretrain or pareto"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(flags, line, error_line, tmp_path):
    command = COMMAND if "--tasks" not in flags else ("--mode", "affinity", "--encoder", "tiny")
    assert line in error_line(2, *command, *flags, "--output", tmp_path / "run")
    assert not (tmp_path / "run").exists()
