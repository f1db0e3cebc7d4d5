"""Silver pairs from the command line: proposed, labelled, written, and trained on."""

import csv
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from run_files import SAMPLE, metrics

import cli
from common.json_files import read_json
from minbert.bi_encoder import BiEncoder
from multitask import RunConfig
from multitask.config_tasks import plain_tasks
from multitask.storage.run_folder import RunFolder
from serving import MultiTaskModel, silver
from tasks import CS224N, build_task, data_folder
from tasks.readers import normalise_text
from tasks.silver import provenance_file

FEW = ("--limit", "24", "--dev-limit", "8")
SMALL = ("--encoder", "tiny", "--epochs", "1", "--batch-size", "8", *FEW)
OWN = "text=One guest says,text=Another guest says,label=How alike (0-10)"
TEACHERS = {
    "sts": ("--task", "sts", "--pair", "joint"),
    "qqp": ("--task", "qqp", "--pair", "joint"),
    "bi": ("--task", "sts"),
    "mrpc": ("--task", "mrpc", "--pair", "joint"),
    "own": ("--task", f"alike={SAMPLE}/own/alike.csv:type=similarity,{OWN},pair=joint"),
}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A small run that labels pairs; read only but for the scores that it keeps."""
    root = tmp_path_factory.mktemp("teachers")

    def make(name):
        folder = root / name
        if not folder.exists():
            command = ("--mode", "single", *TEACHERS[name], *SMALL, "--output", str(folder))
            assert cli.main(list(command)) == 0
        return folder

    return make


def mine(run, target, *flags):
    search = () if "random" in flags else ("--encoder", "tiny")
    return ("--mode", "mine", "--teacher", run, "--as-task", target, *search, *flags)


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as content:
        return list(csv.reader(content, delimiter="," if file.suffix == ".csv" else "\t"))


def pairs_of(examples):
    return [frozenset(map(normalise_text, pair)) for pair in zip(*examples.texts, strict=True)]


def held_out(tasks):
    """Every normalised text of dev and test."""
    return {
        normalise_text(text)
        for task in tasks
        for split in task.source.splits
        if split != "train"
        for column in task.read(data_folder("sample"), split).texts
        for text in column
    }


@pytest.mark.parametrize("name", TEACHERS)
@pytest.mark.parametrize("proposals", ["semantic", "random"])
def test_pairs_are_new_labelled_by_the_teacher_and_not_of_dev_or_test(
    name, proposals, teacher, tmp_path, run_ok
):
    run, target = teacher(name), tmp_path / ("silver.csv" if name != "qqp" else "silver.tsv")
    result = run_ok(*mine(run, target, "--pairs", "50", "--proposals", proposals))
    config = RunConfig.from_json(json.loads((run / "config.json").read_text()))
    (task,) = plain_tasks(config).values()
    gold = task.read(data_folder("sample"), "train", config.limit)
    (header, *rows) = rows_of(target)
    pairs = [frozenset(map(normalise_text, row[:2])) for row in rows]
    assert 0 < len(pairs) <= 50
    assert len(set(pairs)) == len(pairs)
    assert all(len(pair) == 2 for pair in pairs)
    assert not set(pairs) & set(pairs_of(gold))
    texts = {normalise_text(text) for column in gold.texts for text in column}
    held = held_out([task, *map(build_task, CS224N)])
    for pair in pairs:
        assert pair <= texts
        assert not pair & held
    # The labels are those that the run predicts.
    found = MultiTaskModel.load(run).predict([tuple(row[:2]) for row in rows])[task.name]
    if task.kind.classes is None:
        assert np.abs(found.values - [float(row[2]) for row in rows]).max() < 1e-3
    else:
        scores = np.array([row[3:] for row in rows], float)
        assert np.abs(found.probabilities - scores).max() < 1e-4
        assert [name.partition(" of ")[2] for name in header[3:]] == silver.class_labels(task)
        for row in rows:
            assert row[2] == silver.class_labels(task)[np.argmax(row[3:])]
    about = json.loads((tmp_path / f"{target.name}.provenance.json").read_text())
    assert (about["task"], about["teacher"]) == (task.name, run.name)
    assert (about["weights"], about["pairs"]) == (RunFolder(run).weights_checksum(), len(rows))
    assert about["proposals"] == proposals
    assert about["left_out"]["sentences of dev or test"] == len(texts & held)
    assert str(tmp_path) not in json.dumps(about)
    assert f"{len(rows):,}" in result.stdout


def test_python_writes_the_same_pairs_as_the_command(teacher, tmp_path, run_ok):
    run, target, own = teacher("sts"), tmp_path / "command.csv", tmp_path / "python.csv"
    run_ok(*mine(run, target, "--pairs", 20, "--seed", 3, "--precision", "fp32"))
    search = silver.Search(BiEncoder.from_pretrained("tiny"), "tiny", neighbours=5)
    found = silver.label_pairs(silver.open_teacher(run), own, 20, seed=3, search=search)
    assert own.read_bytes() == target.read_bytes()
    assert len(found.labels.texts) == len(found.pairs) == 20
    one, other = (read_json(provenance_file(file)) for file in (own, target))
    assert one | {"date": ""} == other | {"date": ""}


@pytest.mark.parametrize("name", ["qqp", "mrpc", "own"])
def test_both_ways_to_train_on_them_run_as_printed(name, teacher, tmp_path, run_ok, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = Path("silver pairs.csv")
    text = run_ok(*mine(teacher(name), target, "--pairs", "40", "--seed", "3")).stdout
    (more,) = re.findall(r"with (--silver .*)$", text, re.MULTILINE)
    (own,) = re.findall(r": (--auxiliary .*)$", text, re.MULTILINE)
    words = [one.removesuffix(",pair=joint") for one in TEACHERS[name][:2]]
    count = len(rows_of(target)) - 1
    # With --teacher, the silver pairs have soft labels of the same run.
    soft = ("--teacher", teacher(name), "--output", "more")
    text = run_ok("--mode", "single", *words, *SMALL, *shlex.split(more), *soft).stdout
    assert f": train {24 + count}, dev" in text
    assert metrics(Path("more"))["steps"] == -(-(24 + count) // 8)
    beside = ("--mode", "multitask", "--tasks", "sst", *shlex.split(own), *SMALL)
    run_ok(*beside, "--output", "own")
    found = metrics(Path("own"))
    assert any(task.endswith("-silver") for task in found["dev"])
    # No label of the teacher selects the epoch.
    assert found["history"][0]["selection_score"] == found["dev"]["sst"]["accuracy"]


def test_a_run_on_silver_pairs_is_used_without_their_file(teacher, tmp_path, run_ok):
    target, run = tmp_path / "silver.csv", tmp_path / "run"
    run_ok(*mine(teacher("sts"), target, "--pairs", "20"))
    single = ("--mode", "single", "--task", "sts", *SMALL, "--silver", target)
    run_ok(*single, "--output", run)
    target.unlink()
    shutil.copytree(run, tmp_path / "copy")
    soup = ("--mode", "ensemble", "--method", "soup", "--runs", run, tmp_path / "copy")
    run_ok(*soup, "--output", tmp_path / "soup")
    run_ok("--mode", "export", "--run", run, "--output", tmp_path / "out")
    assert str(tmp_path) not in (tmp_path / "out" / "run.json").read_text()
    pairs = [("A cat sleeps.", "The sun is up.")]
    one, other = (
        MultiTaskModel.load(f).predict(pairs)["sts"].values for f in (run, tmp_path / "out")
    )
    assert one == other


def test_a_planted_text_of_dev_is_refused_with_its_row(teacher, tmp_path, run_ok, error_line):
    target = tmp_path / "silver.csv"
    run_ok(*mine(teacher("sts"), target, "--pairs", "20"))
    planted = build_task("qqp").read(data_folder("sample"), "test").texts[1][3]
    lines = target.read_text().splitlines()
    lines.insert(5, f'"{planted}",a cow,2.0')
    target.write_text("\n".join(lines) + "\n")
    single = ("--mode", "single", "--task", "sts", *SMALL, "--silver", target)
    line = error_line(1, *single, "--output", tmp_path / "run")
    assert f"{target}, row 5: expected silver pairs without texts of dev or test, found" in line
    assert "quora-test-student.csv" in line
    result = run_ok(*single, "--drop-leaks", "--output", tmp_path / "run")
    assert "training examples removed because they are in dev or test" in result.stdout


def test_an_interrupted_command_goes_on_and_writes_nothing(
    teacher, tmp_path, run, run_ok, monkeypatch
):
    folder = Path(shutil.copytree(teacher("qqp"), tmp_path / "teacher"))
    target, whole = tmp_path / "silver.csv", tmp_path / "whole.csv"
    shutil.rmtree(folder / "soft-targets", ignore_errors=True)  # of other tests
    command = mine(folder, target, "--pairs", "50", "--proposals", "random")
    run_ok(*mine(teacher("qqp"), whole, "--pairs", "50", "--proposals", "random"))
    monkeypatch.setattr(silver, "PART", 20)
    real, calls = silver.stored_or_computed, []

    def stops(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(silver, "stored_or_computed", stops)
    result = run(*command)
    assert result.returncode == 130
    assert "the same command goes on" in result.stderr
    assert not list(tmp_path.glob("silver*"))
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("soft-targets/*.npz")}
    assert len(kept) == 2
    monkeypatch.setattr(silver, "stored_or_computed", real)
    run_ok(*command)
    after = {file: file.stat().st_mtime_ns for file in folder.glob("soft-targets/*.npz")}
    assert len(after) == 3
    assert {file: after[file] for file in kept} == kept
    for one, other in zip(rows_of(target), rows_of(whole), strict=True):
        assert one[:3] == other[:3]


REFUSED = [
    (2, "--teacher {run}", "--teacher and --as-task: expected both, found only --teacher"),
    (2, "--as-task s.csv", "--teacher and --as-task: expected both, found only --as-task"),
    (2, "--input {text} --pairs 3", "--pairs: expected --teacher and --as-task with it"),
    (2, "--input {text} --seed 3", "--seed: expected --teacher and --as-task with it"),
    (2, "", "--input: expected a file, or --teacher RUN and --as-task FILE, found none"),
    (2, "{both} --top 3", "--top: expected neither --teacher nor --as-task with it"),
    (2, "{both} --input {text}", "--input: expected neither --teacher nor --as-task with it"),
    (2, "{both} --proposals random --neighbours 3", "--neighbours: expected --proposals semantic"),
    (2, "{both} --proposals random --encoder tiny", "--encoder: expected --proposals semantic"),
    (2, "{both} --encoder tiny --run {run}", "--run and --encoder: expected at most one"),
    (2, "--teacher {run} --as-task s.json", "--as-task: expected a name that ends in .csv or .tsv"),
    (2, "{both} --task sst", "--task: expected one of sts, the tasks of pairs of"),
    (1, "{both} --run {run}", "expected a run that embeds single texts, found only pairs in one"),
    (1, "--teacher nowhere --as-task s.csv", "nowhere: expected a run with checkpoint/best, found"),
]


@pytest.mark.parametrize(("status", "flags", "line"), REFUSED, ids=lambda v: str(v)[:40])
def test_flags_without_a_meaning_are_refused(status, flags, line, teacher, cwd, error_line):
    (cwd / "s.txt").write_text("a\nb\n")
    places = {"run": teacher("sts"), "text": "s.txt", "both": f"--teacher {teacher('sts')}"}
    places["both"] += " --as-task s.csv"
    assert line in error_line(status, "--mode", "mine", *flags.format(**places).split())
    assert not list(cwd.glob("s.csv*"))


def test_runs_without_one_task_of_pairs_are_refused(tmp_path, run_ok, error_line):
    run_ok("--mode", "single", "--task", "sst", *SMALL, "--output", tmp_path / "sst")
    line = error_line(1, *mine(tmp_path / "sst", tmp_path / "s.csv"))
    assert (
        "expected a run with a task of pairs that predicts a class or a number, found sst" in line
    )
    several = tmp_path / "several"
    run_ok("--mode", "multitask", "--tasks", "qqp", "sts", *SMALL, "--output", several)
    line = error_line(2, *mine(several, tmp_path / "s.csv"))
    assert "--task: expected one of qqp, sts, the tasks of pairs of" in line
    assert "found none" in line
    run_ok(*mine(several, tmp_path / "s.csv", "--task", "qqp", "--pairs", "9"))
    run_ok("--mode", "export", "--run", several, "--output", tmp_path / "out")
    line = error_line(1, *mine(tmp_path / "out", tmp_path / "t.csv"))
    assert "expected the folder of a run, found an export" in line


def test_a_file_of_the_teachers_data_is_not_replaced(tmp_path, run_ok, error_line):
    pairs = tmp_path / "pairs.csv"
    rows = "".join(f"first text {n},second text {n},{n % 6}\n" for n in range(40))
    pairs.write_text("a,b,score\n" + rows)
    own = f"mine={pairs}:type=similarity,text=a,text=b,label=score"
    run_ok("--mode", "single", "--task", own, *SMALL, "--output", tmp_path / "run")
    line = error_line(1, *mine(tmp_path / "run", pairs, "--pairs", "5", "--overwrite"))
    assert "expected a new file, found one of the teacher's data" in line
    assert pairs.read_text().endswith(rows)


def test_an_existing_file_is_kept(teacher, tmp_path, run_ok, error_line):
    target = tmp_path / "s.csv"
    command = mine(teacher("sts"), target, "--pairs", "9")
    run_ok(*command)
    before = target.read_bytes()
    assert "--overwrite would replace it" in error_line(1, *command)
    assert target.read_bytes() == before
    run_ok(*command, "--overwrite")
    assert target.read_bytes() == before


def test_labels_stay_on_the_scale_and_read_back():
    task = build_task("sts")
    scores = np.float32([-0.2, 0.0, 2.34567, 5.0000005, 7.0])
    labels = silver.written_labels(task, scores, (0.0, 5.0))
    assert labels.texts == ["0.0", "0.0", "2.3457", "5.0", "5.0"]
    odd = silver.written_labels(task, scores, (0.111111111, 5.123456789))
    values = list(map(float, odd.texts))
    assert min(values) == 0.111111111
    assert max(values) == 5.123456789
