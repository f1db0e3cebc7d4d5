"""Downloads into the files of CS224N and GLUE, from folders that the library datasets saved."""

import datasets
import pytest

from tasks import CS224N, build_task
from tasks.hub import ORIGINS

GLUE = [name for name in ORIGINS if name not in CS224N]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder a task, as the hub's data would be; read only."""
    hub = tmp_path_factory.mktemp("hub")
    rows = {"text": [f'A "fine" film,\tno {i}' for i in range(20)], "label": [*range(5)] * 4}
    several = {"sst": dict.fromkeys(("train", "validation", "test"), rows), "sts": {}}
    for part, n in (("train", 60), ("validation", 20), ("test", 20)):
        texts = {"sentence1": [f"{part} {i}" for i in range(n)], "sentence2": ["a b"] * n}
        several["sts"][part] = texts | {"score": [i % 6 * 0.9 for i in range(n)]}
    for name in GLUE:
        texts = {text: [f"{text} {i}\tx" for i in range(12)] for text in ORIGINS[name]["texts"]}
        parts = ("train", "validation_matched" if name == "mnli" else "validation")
        several[name] = dict.fromkeys(parts, texts | {"label": [i % 2 for i in range(12)]})
    for name, parts in several.items():
        splits = {part: datasets.Dataset.from_dict(rows) for part, rows in parts.items()}
        datasets.DatasetDict(splits).save_to_disk(hub / name)
    return hub


@pytest.fixture
def download_to(tmp_path):
    """The command without its source, with the output folder `data` of the test."""
    return ("--mode", "download", "--output", tmp_path / "data")


def test_downloaded_tasks_can_be_read(source, tmp_path, download_to, run_ok):
    folder = tmp_path / "data"
    run_ok(*download_to, "--source", source, "--tasks", "sst", "sts", "glue")
    for name in ("sst", "sts", *GLUE):
        task = build_task(name)
        for part in task.source.splits:
            examples = task.read(folder, part)
            assert (examples.targets is None) == (part == "test")
            if name != "sts" and part != "test":
                assert set(examples.targets) >= {0, 1}
    assert task.read(folder, "train").texts[0][3] == "premise 3 x"
    parts = [build_task("sts").read(folder, part).texts[0] for part in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [70, 10, 20]
    assert len({text for part in parts for text in part}) == 100


def test_an_existing_file_is_replaced_only_with_overwrite(source, tmp_path, download_to, run_ok):
    file = tmp_path / "data" / "ids-sst-train.csv"
    file.parent.mkdir()
    file.write_text("precious")
    command = (*download_to, "--tasks", "sst", "--source", source)
    assert f"sst: skipped, {file} exists" in run_ok(*command).stdout
    assert file.read_text() == "precious"
    run_ok(*command, "--overwrite")
    assert len(build_task("sst").read(file.parent, "train")) == 20


@pytest.mark.parametrize(
    ("task", "change", "expected"),
    [
        ("sst", {"label": [7] * 20}, "expected 0, 1, 2, 3, 4, found '7'"),
        ("sst2", {"label": [-1] * 12}, "expected 0, 1, found 'class -1'"),
    ],
)
def test_wrong_labels_are_refused(
    source, tmp_path, download_to, error_line, task, change, expected
):
    splits = datasets.load_from_disk(str(source / task))
    columns = {name: list(splits["train"][name]) for name in splits["train"].column_names}
    splits = dict(splits) | {"train": datasets.Dataset.from_dict(columns | change)}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "other" / task)
    line = error_line(1, *download_to, "--tasks", task, "--source", tmp_path / "other")
    assert expected in line
    assert not (tmp_path / "data").exists()


def test_without_a_network_the_line_names_source(download_to, error_line, tmp_path, monkeypatch):
    def unreachable(*args, **further):
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    line = error_line(1, *download_to, "--tasks", "sts")
    assert "could not be reached; --source DIR" in line
    assert not (tmp_path / "data").exists()
