"""Downloads into the files of CS224N and GLUE, from folders that the library datasets saved."""

import datasets
import pytest

from cli import download
from tasks import build_task
from tasks.hub import ORIGINS


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder a task, as the hub's data would be; read only."""
    hub = tmp_path_factory.mktemp("hub")
    rows = {"text": [f'A "fine" film,\tno {i}' for i in range(20)], "label": [*range(5)] * 4}
    several = {"sst": dict.fromkeys(("train", "validation", "test"), rows), "sts": {}}
    for part, n in (("train", 60), ("validation", 20), ("test", 20)):
        texts = {"sentence1": [f"{part} {i}" for i in range(n)], "sentence2": ["a b"] * n}
        several["sts"][part] = texts | {"score": [i % 6 * 0.9 for i in range(n)]}
    for name in download.GLUE_SIZES:
        texts = {text: [f"{text} {i}\tx" for i in range(12)] for text in ORIGINS[name].texts}
        parts = ("train", "validation_matched" if name == "mnli" else "validation")
        several[name] = dict.fromkeys(parts, texts | {"label": [i % 2 for i in range(12)]})
    for name, parts in several.items():
        made = {part: datasets.Dataset.from_dict(rows) for part, rows in parts.items()}
        datasets.DatasetDict(made).save_to_disk(hub / name)
    return hub


def test_every_task_can_be_read_afterwards(source, tmp_path, run, ran):
    folder = tmp_path / "data"
    command = ("--mode", "download", "--source", source, "--output", folder)
    ran(*command, "--tasks", "sst", "sts", "glue")
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
    ("task", "change", "expected"),
    [
        ("sst", {"label": [7] * 20}, "expected a whole number from 0 to 4, found '7'"),
        ("sst", {"label": [None] * 20}, "row 1: expected a number in label, found None"),
        ("sst2", {"label": [-1] * 12}, "expected the number of a class, found -1"),
    ],
)
def test_labels_that_mean_nothing_are_refused_and_nothing_is_written(
    source, tmp_path, refused, task, change, expected
):
    kept = datasets.load_from_disk(str(source / task))
    columns = {name: list(kept["train"][name]) for name in kept["train"].column_names}
    kept = dict(kept) | {"train": datasets.Dataset.from_dict(columns | change)}
    datasets.DatasetDict(kept).save_to_disk(tmp_path / "other" / task)
    place = ("--source", tmp_path / "other", "--output", tmp_path / "data")
    line = refused(1, "--mode", "download", "--tasks", task, *place)
    assert expected in line
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
    ("flags", "status", "expected"),
    [
        (("--tasks", "qqp"), 1, "expected the output of datasets' save_to_disk"),
        (("--tasks", "sst", "sts", "--revision", "abc"), 2, "--revision: expected one task"),
        (("--tasks", "sst", "--revision", "abc"), 2, "--revision and --source"),
    ],
)
def test_what_cannot_be_downloaded_is_refused_in_a_line(
    source, refused, tmp_path, flags, status, expected
):
    command = ("--mode", "download", "--source", source, "--output", tmp_path / "data", *flags)
    assert expected in refused(status, *command)


def test_without_a_network_the_error_names_offline_encoders(refused, tmp_path, monkeypatch):
    def unreachable(*args, **further):
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    line = refused(1, "--mode", "download", "--tasks", "sts", "--output", tmp_path / "data")
    assert "could not be reached: expected a network, or --source DIR" in line
    assert not (tmp_path / "data").exists()


def test_other_numbers_of_examples_than_expected_are_reported(source, run, tmp_path, monkeypatch):
    monkeypatch.setattr(
        datasets, "load_dataset", lambda *a, **k: datasets.load_from_disk(str(source / "sst"))
    )
    found = run("--mode", "download", "--tasks", "sst", "--output", tmp_path / "data")
    assert found.returncode == 1
    assert "sst train: expected 8,544 examples, found 20" in found.stdout
