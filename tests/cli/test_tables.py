"""`--data-file`: several columns of labels of one file as tasks."""

import pytest
from run_files import SAMPLE, config, metrics, prediction_bytes

TICKETS = SAMPLE / "own" / "tickets.csv"
TABLE = ("--data-file", TICKETS, "--text", "text")
URGENCY = "urgency:type=classification,labels=low|normal|high"
TAGS = "tags:type=multi-label"
RUN = ("--encoder", "tiny", "--epochs", "1", "--steps-per-epoch", "2", "--limit", "40")


def test_a_table_is_listed_with_its_inferred_kinds(run_ok):
    shown = run_ok("--mode", "tasks", *TABLE, "--labels", "topic", URGENCY, TAGS)
    lines = shown.stdout.splitlines()
    assert "60 rows without label or text skipped" in shown.stdout
    for line in (
        "topic: classification of 'text', label 'topic': 5 classes: account, billing, delivery",
        "urgency: classification of 'text', label 'urgency': 3 classes: low, normal, high",
        "tags: multi-label of 'text', label 'tags': 6 labels: app, damaged",
    ):
        assert f"\n{line}" in shown.stdout
    assert lines[2].startswith("topic  ")  # own tasks are first
    kinds = [line.split()[3:5] for line in lines if line.startswith(("topic  ", "tags  "))]
    assert kinds == [["5", "classes"], ["6", "labels"]]


def test_a_table_is_trained_with_a_built_in_task_used_and_resumed(tmp_path, run_ok, small):
    folder = tmp_path / "run"
    labels = ("--labels", "topic", URGENCY, TAGS)
    command = ("--mode", "multitask", "--tasks", "sst", *TABLE, *labels, *RUN, "--data", small)
    run_ok(*command, "--output", folder)
    stored = config(folder)
    assert [one["name"] for one in stored["tasks"]] == ["sst", "topic", "urgency", "tags"]
    assert list(metrics(folder)["test"]) == ["topic", "urgency", "tags"]
    assert "holds this run, finished" in run_ok(*command, "--output", folder).stdout
    again = ("--mode", "multitask", "--config", folder / "config.json", "--output", tmp_path / "b")
    run_ok(*again)
    assert prediction_bytes(tmp_path / "b") == prediction_bytes(folder)
    page = tmp_path / "p.csv"
    predict = ("--mode", "predict", "--run", folder, "--input", TICKETS, "--column", "text")
    run_ok(*predict, "--tasks", "topic", "--output", page)


def test_one_label_of_a_table_is_trained_alone(tmp_path, run_ok, error_line):
    run_ok("--mode", "single", *TABLE, "--labels", "topic", *RUN, "--output", tmp_path / "run")
    assert [one["name"] for one in config(tmp_path / "run")["tasks"]] == ["topic"]
    keys = f"train: {TICKETS}, text: text, label: topic"
    (tmp_path / "a.yaml").write_text(f"tasks: {{topic: {{{keys}}}}}\n")
    alone = ("--mode", "single", "--config", tmp_path / "a.yaml")
    run_ok(*alone, *RUN, "--output", tmp_path / "yaml")
    assert prediction_bytes(tmp_path / "yaml") == prediction_bytes(tmp_path / "run")
    line = error_line(2, "--mode", "single", *TABLE, "--labels", "topic", TAGS, *RUN)
    assert "--task: expected one, found topic, tags; --labels of --data-file are tasks" in line


@pytest.mark.parametrize(
    ("status", "flags", "line"),
    [
        (2, "--labels topic --tasks sst", "--labels: needs --data-file, the table"),
        (2, "--data-file T --text text", "tickets.csv: labels: expected a column or more, found"),
        (
            2,
            "--data-file T --text text --labels topic --tasks topic",
            "tasks: topic is there twice",
        ),
        (1, "--data-file T --text text --labels mood", "expected a column 'mood', found text"),
    ],
)
def test_wrong_flags_of_tables_are_refused_in_one_line(status, flags, line, error_line, tmp_path):
    words = [str(TICKETS) if word == "T" else word for word in flags.split()]
    command = ("--mode", "multitask", *words, "--encoder", "tiny", "--output", tmp_path / "run")
    assert line in error_line(status, *command)
    assert not (tmp_path / "run").exists()
