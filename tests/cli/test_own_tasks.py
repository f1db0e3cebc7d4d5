"""A user's own file as a task: trained beside the built-in ones, compared, merged, probed."""

import json
import shutil
from pathlib import Path

import pytest
from run_files import config, metrics

import cli
from common.files import write_json

RUN = ("--encoder", "tiny", "--epochs", "1", "--limit", "40", "--dev-limit", "20")


@pytest.fixture(scope="module")
def moods(tmp_path_factory):
    """A file of 60 single texts in three classes, with odd names of columns; read only."""
    file = tmp_path_factory.mktemp("own") / "moods.csv"
    words = {"gut": "what a fine day", "schlecht": "what a dreadful day", "so lala": "a day"}
    lines = [f'"{text}, number {i}",{mood}' for i in range(20) for mood, text in words.items()]
    file.write_text("\n".join(["Was gesagt wurde,Wie", *lines]) + "\n")
    return ("--data-file", str(file), "--text", "Was gesagt wurde", "--labels", "moods=Wie")


@pytest.fixture(scope="module")
def trained(moods, tmp_path_factory):
    """Runs of two seeds on it; read only."""
    root = tmp_path_factory.mktemp("trained")
    folders = [root / f"run{seed}" for seed in (1, 2)]
    for seed, folder in enumerate(folders, 1):
        single = ("--mode", "single", *moods, *RUN, "--seed", str(seed))
        assert cli.main([*single, "--output", str(folder)]) == 0
    return folders


def test_an_own_task_is_trained_with_built_in_tasks(moods, tmp_path, run_ok, small):
    folder = tmp_path / "run"
    command = ("--mode", "multitask", "--tasks", "sst", "sts", *moods, *RUN)
    command = (*command, "--pcgrad", "--sampling", "annealed", "--data", small)
    run_ok(*command, "--output", folder)
    stored = metrics(folder)
    assert set(stored["dev"]) >= {"sst", "sts", "moods"}
    assert set(stored["dev"]["moods"]) == {"accuracy", "macro_f1", "matthews"}
    assert set(stored["test"]) == {"moods"}  # the others' test files have no labels
    lines = (folder / "predictions" / "moods-dev-output.csv").read_text().splitlines()
    assert lines[0] == "id \t Predicted_Label "
    assert {line.split(" , ")[1].strip() for line in lines[1:]} <= {"gut", "schlecht", "so lala"}
    assert "holds this run, finished" in run_ok(*command, "--output", folder).stdout
    printed = run_ok(*command, "--output", folder, "--overwrite").stdout
    assert printed.count("moods: classification of 'Was gesagt wurde', label 'Wie': 3 classes") == 1


@pytest.mark.parametrize("split", ["dev", "test"])
def test_row_numbers_of_another_file_are_not_merged_or_compared(
    trained, split, tmp_path, run_ok, error_line
):
    """Equal ids are then those of other examples."""
    copies = [tmp_path / "one", tmp_path / "two"]
    for folder, copy in zip(trained, copies, strict=True):
        shutil.copytree(folder, copy)
    stored = json.loads((copies[1] / "data.json").read_text())
    stored[f"moods {split}"] = "0" * 64
    (copies[1] / "data.json").write_text(json.dumps(stored))
    line = f"{copies[1]}: expected the {split} file of moods of {copies[0]}"
    merge = ("--mode", "ensemble", "--runs", *copies, "--output", tmp_path / "both")
    assert line in error_line(1, *merge)
    compare = ("--mode", "compare", "--runs", *copies, "--output", tmp_path / "page")
    if split == "dev":
        assert line in error_line(1, *compare)
    else:
        run_ok(*compare)


def test_modes_that_train_store_its_description(moods, trained, tmp_path, run_ok):
    small = ("--limit", "40", "--encoder", "tiny", "--dev-limit", "20")
    run_ok("--mode", "probe", *moods, *small, "--output", tmp_path / "probe")
    assert [one["name"] for one in config(tmp_path / "probe")["tasks"]] == ["moods"]
    write_json(tmp_path / "tasks.json", {"tasks": config(trained[0])["tasks"]})
    command = ("--mode", "pretrain", "--objective", "superloss", "--batch-size", "6", *small)
    more = ("--epochs", "1", "--config", tmp_path / "tasks.json", "--output", tmp_path / "run")
    run_ok(*command, *more)
    assert config(tmp_path / "run")["tasks"] == config(trained[0])["tasks"]


def test_its_file_is_not_overwritten_by_its_run(moods, trained, tmp_path, error_line):
    folder = Path(shutil.copytree(trained[0], tmp_path / "run"))
    inside = Path(shutil.copy(moods[1], folder / "predictions" / "mine.csv"))
    task = ("--data-file", inside, *moods[2:])
    again = ("--mode", "single", *task, *RUN, "--output", folder, "--overwrite")
    assert "expected a path outside of" in error_line(2, *again)
    assert inside.exists()


# Truncated texts, and the card of an export


@pytest.fixture
def lengthy(tmp_path):
    """30 training rows of one text, three of them too long; 8 of dev, one of them too long."""
    for name, rows, long in (("train", 30, 3), ("dev", 8, 1), ("test", 8, 1)):
        texts = [f"{'a b ' * (100 if i < long else 1)}{i},{'yn'[i % 2]}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["t,y", *texts]) + "\n")
    return ("--data-file", str(tmp_path), "--text", "t", "--labels", "lengthy=y")


def test_truncated_texts_are_counted_by_task_and_split(lengthy, tmp_path, run_ok):
    folder = tmp_path / "run"

    command = ("--mode", "multitask", "--tasks", "sts", *lengthy, *RUN)
    result = run_ok(*command, "--batch-size", "8", "--output", folder)
    assert [line for line in result.stdout.splitlines() if line.endswith("cut")] == [
        "lengthy: 3 of 30 train texts are longer than 128 tokens and were cut",
        "lengthy: 1 of 8 dev texts is longer than 128 tokens and was cut",
        "lengthy: 1 of 8 test texts is longer than 128 tokens and was cut",
    ]
    assert metrics(folder)["cut_texts"] == {"sts": [0, 80], "lengthy": [3, 30]}
    run_ok("--mode", "export", "--run", folder, "--output", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| longest text | 128 tokens |" in card
    assert "| data of lengthy | train.csv, dev.csv, test.csv, classification |" in card
    assert str(tmp_path) not in card


def test_a_finished_run_of_files_that_were_changed_is_refused(
    moods, tmp_path, run, run_ok, error_line
):
    folder = tmp_path / "run"
    own = Path(shutil.copy(moods[1], tmp_path))
    command = ("--mode", "single", "--data-file", own, *moods[2:], *RUN, "--output", folder)
    run_ok(*command)
    assert "holds this run, finished" in run_ok(*command).stdout
    header, *rows = own.read_text().splitlines()
    own.write_text("\n".join([header, *reversed(rows), ""]))
    line = "the run began with another moods train than there is now"
    assert line in error_line(1, *command)
    assert "data read and encoder loaded" in run_ok(*command, "--overwrite").stdout
