"""A user's own file: columns of labels as tasks, trained beside built-in ones, merged, probed."""

import json
import shutil
from pathlib import Path

import pytest
from run_files import SAMPLE, config, metrics, prediction_bytes

import cli
from common.files import write_json

RUN = ("--encoder", "tiny", "--epochs", "1", "--limit", "40", "--dev-limit", "20")
TICKETS = SAMPLE / "own" / "tickets.csv"
TABLE = ("--data-file", TICKETS, "--text", "text")
URGENCY = "urgency:type=classification,labels=low|normal|high"
TAGS = "tags:type=multi-label"


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


def test_a_table_is_listed_with_its_columns_and_their_inferred_kinds(run_ok):
    shown = run_ok("--mode", "tasks", *TABLE, "--labels", "topic", URGENCY, TAGS).stdout
    lines = [*map(str.split, shown.splitlines())]
    assert "tickets.csv: 400 rows" in shown
    for line in (
        "topic: classification of 'text', label 'topic': 5 classes: account, billing, delivery",
        "topic: skipped 60 rows without label or text",
        "urgency: classification of 'text', label 'urgency': 3 classes: low, normal, high",
        "tags: multi-label of 'text', label 'tags': 6 labels: app, damaged",
    ):
        assert f"\n{line}" in shown
    for line in ("topic classification delivery billing 340", "topic 5 classes of texts 274 40 26"):
        assert line.split() in lines
    assert "iflytek" not in shown
    assert "To make tasks of these columns" in run_ok("--mode", "tasks", *TABLE[:2]).stdout


def test_columns_of_a_table_are_trained_with_a_built_in_task(tmp_path, run_ok, small):
    folder = tmp_path / "run"
    labels = ("--labels", "topic", URGENCY, TAGS)
    command = ("--mode", "multitask", "--tasks", "sst", *TABLE, *labels, *RUN, "--data", small)
    printed = run_ok(*command, "--output", folder).stdout
    assert printed.count("topic: classification of 'text', label 'topic': 5 classes") == 1
    assert [one["name"] for one in config(folder)["tasks"]] == ["sst", "topic", "urgency", "tags"]
    stored = metrics(folder)
    assert set(stored["dev"]["topic"]) == {"accuracy", "macro_f1", "matthews"}
    assert list(stored["test"]) == ["topic", "urgency", "tags"]  # sst's has no labels
    lines = (folder / "predictions" / "urgency-dev-output.csv").read_text().splitlines()
    assert lines[0] == "id \t Predicted_Label "
    assert {line.split(" , ")[1].strip() for line in lines[1:]} <= {"low", "normal", "high"}
    assert "holds this run, already finished" in run_ok(*command, "--output", folder).stdout
    again = ("--mode", "multitask", "--config", folder / "config.json", "--output", tmp_path / "b")
    run_ok(*again)
    assert prediction_bytes(tmp_path / "b") == prediction_bytes(folder)


def test_a_table_in_a_file_of_settings_is_that_of_the_flags(tmp_path, run_ok):
    run_ok("--mode", "single", *TABLE, "--labels", "topic", *RUN, "--output", tmp_path / "run")
    keys = f"train: {TICKETS}, text: text, label: topic"
    (tmp_path / "a.yaml").write_text(f"tasks: {{topic: {{{keys}}}}}\n")
    alone = ("--mode", "single", "--config", tmp_path / "a.yaml")
    run_ok(*alone, *RUN, "--output", tmp_path / "yaml")
    assert prediction_bytes(tmp_path / "yaml") == prediction_bytes(tmp_path / "run")


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
    line = f"{copies[1]}: its {split} file of moods is not the one of {copies[0]}"
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
    assert "mine.csv in this folder" in error_line(2, *again)
    assert inside.exists()


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
