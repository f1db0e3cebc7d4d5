"""CLUE's files of JSON lines, and the classes they name."""

import json

import pytest

from tasks import PAIRS, build_task
from tasks.catalog import CLUE
from tasks.text_files import DataError


def write(folder, name, rows):
    """The train file of a task with these labels."""
    declared = CLUE[name]
    file = folder / declared.folder / declared.train
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(dict.fromkeys(declared.texts, f"文 {i}") | {"label": label, "id": i})
        for i, label in enumerate(rows)
    ]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


@pytest.mark.parametrize("name", CLUE)
def test_every_label_is_read(name, tmp_path):
    declared, task = CLUE[name], build_task(name)
    write(tmp_path, name, declared.labels)
    found = task.read(tmp_path, "train")
    assert found.targets.tolist() == list(range(len(declared.labels)))
    assert found.texts[0][1] == "文 1"
    assert len(found.texts) == (2 if name in PAIRS else 1)
    assert len(task.kind.class_names) == (0 if name == "iflytek" else task.kind.classes)


def test_labels_may_be_numbers_and_those_without_agreement_are_left_out(tmp_path):
    write(tmp_path, "afqmc", [1, 0, 1])
    assert build_task("afqmc").read(tmp_path, "train").targets.tolist() == [1, 0, 1]
    write(tmp_path, "ocnli", ["neutral", "-", "entailment"])
    found = build_task("ocnli").read(tmp_path, "train")
    assert (found.targets.tolist(), found.blank_labels) == ([1, 0], 1)


def test_what_is_wrong_is_refused_with_its_line(tmp_path):
    task = build_task("tnews")
    file = write(tmp_path, "tnews", ["100", "105"])
    with pytest.raises(DataError, match="line 2: label: expected 100, 101, "):
        task.read(tmp_path, "train")
    file.write_text('{"label": "100", "sentence": "a"}\n{"label": "100"}\n')
    with pytest.raises(DataError, match="line 2: expected text in 'sentence', found None"):
        task.read(tmp_path, "train")
    file.write_text("[1]\n")
    with pytest.raises(DataError, match="line 1: expected text in 'sentence', found list"):
        task.read(tmp_path, "train")
