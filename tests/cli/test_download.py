"""Downloads into the files of CS224N and GLUE, from folders that the library datasets saved."""

from __future__ import annotations

import datasets
import pytest

from cli import download
from tasks import build_task
from tasks.hub import ORIGINS


def split(rows):
    return datasets.Dataset.from_dict(rows)


@pytest.fixture
def source(tmp_path):
    """A folder a task, as the hub's data would be."""
    texts = {"text": [f'A "fine" film,\tno {i}' for i in range(20)]}
    several = {
        "sst": {
            name: split(texts | {"label": [i % 5 for i in range(20)]})
            for name in ("train", "validation", "test")
        },
        "sts": {
            name: split(
                {
                    "sentence1": [f"{name} {i}" for i in range(n)],
                    "sentence2": ["a b"] * n,
                    "score": [i % 6 * 0.9 for i in range(n)],
                }
            )
            for name, n in (("train", 60), ("validation", 20), ("test", 20))
        },
    }
    for name in download.GLUE_SIZES:
        columns = {text: [f"{text} {i}\tx" for i in range(12)] for text in ORIGINS[name].texts}
        labels = {"label": [i % 2 for i in range(12)]}
        names = ("train", "validation_matched" if name == "mnli" else "validation")
        several[name] = {key: split(columns | labels) for key in names}
    for name, splits in several.items():
        datasets.DatasetDict(splits).save_to_disk(tmp_path / "hub" / name)
    return tmp_path / "hub"


def test_every_task_can_be_read_afterwards(source, tmp_path, run):
    folder = tmp_path / "data"
    command = ("--mode", "download", "--source", source, "--output", folder)
    found = run(*command, "--tasks", "sst", "sts", "glue")
    assert found.returncode == 0, found.stderr
    for name in ("sst", "sts", *download.GLUE_SIZES):
        task = build_task(name)
        for part in task.source.splits:
            examples = task.read(folder, part)
            assert (examples.targets is None) == (part == "test")
            if part != "test":
                assert set(examples.targets) >= {0, 1} if name != "sts" else True
    assert task.read(folder, "train").texts[0][3] == "premise 3 x"
    assert "sst: skipped, " in run(*command, "--tasks", "sst").stdout
    sizes = [len(build_task("sts").read(folder, part)) for part in ("train", "dev", "test")]
    assert sizes == [70, 10, 20]
    parts = [build_task("sts").read(folder, part).texts[0] for part in ("train", "dev", "test")]
    assert len({text for part in parts for text in part}) == 100


@pytest.mark.parametrize(
    ("task", "change", "told"),
    [
        ("sst", {"label": [7] * 20}, "expected a whole number from 0 to 4, found '7'"),
        ("sst", {"label": [None] * 20}, "row 1: expected a number in label, found None"),
        ("sst", {"text": [None] * 20}, "row 1: expected text in text, found None"),
        ("sst2", {"label": [-1] * 12}, "expected the number of a class, found -1"),
        ("sst2", {"label": [5] * 12}, "expected the number of a class, found 5"),
        ("sts", {"score": [9.9] * 60}, "expected a number from 0 to 5, found '9.9'"),
    ],
)
def test_labels_that_mean_nothing_are_told_and_nothing_is_written(
    source, tmp_path, refused, task, change, told
):
    kept = datasets.load_from_disk(str(source / task))
    columns = {name: list(kept["train"][name]) for name in kept["train"].column_names}
    kept = dict(kept) | {"train": split(columns | change)}
    datasets.DatasetDict(kept).save_to_disk(tmp_path / "other" / task)
    place = ("--source", tmp_path / "other", "--output", tmp_path / "data")
    line = refused(1, "--mode", "download", "--tasks", task, *place)
    assert told in line
    assert not (tmp_path / "data").exists()


def test_a_file_that_is_there_stays(source, tmp_path, run):
    file = tmp_path / "data" / "ids-sst-train.csv"
    file.parent.mkdir()
    file.write_text("precious")
    command = ("--mode", "download", "--tasks", "sst", "--source", source, "--output", file.parent)
    assert f"sst: skipped, {file} exists" in run(*command).stdout
    assert file.read_text() == "precious"
    assert run(*command, "--overwrite").returncode == 0
    assert file.read_text() != "precious"


@pytest.mark.parametrize(
    ("flags", "status", "told"),
    [
        (("--tasks", "qqp"), 1, "expected the output of datasets' save_to_disk"),
        (("--tasks", "sst", "sts", "--revision", "abc"), 2, "--revision: expected one task"),
        (("--tasks", "nope"), 2, "nope"),
        (("--tasks", "sst", "--revision", "abc"), 2, "--revision and --source"),
    ],
)
def test_what_cannot_be_had_is_told_in_a_line(source, refused, tmp_path, flags, status, told):
    command = ("--mode", "download", "--source", source, "--output", tmp_path / "data", *flags)
    assert told in refused(status, *command)


def test_without_a_network_it_says_what_to_do(refused, tmp_path, monkeypatch):
    def unreachable(*args, **further):
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    line = refused(1, "--mode", "download", "--tasks", "sts", "--output", tmp_path / "data")
    assert "could not be reached: expected a network, or --source DIR" in line
    assert not (tmp_path / "data").exists()


def test_other_numbers_than_expected_are_told(source, run, tmp_path, monkeypatch):
    monkeypatch.setattr(
        datasets, "load_dataset", lambda *a, **k: datasets.load_from_disk(str(source / "sst"))
    )
    found = run("--mode", "download", "--tasks", "sst", "--output", tmp_path / "data")
    assert found.returncode == 1
    assert "sst train: expected 8,544 examples, found 20" in found.stdout
