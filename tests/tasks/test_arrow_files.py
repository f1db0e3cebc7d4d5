"""Parquet files and folders that the library datasets saved give the rows of a text file."""

import datasets
import pytest

from tasks import find_task
from tasks.described import parse_description
from tasks.tables import rows_by_name
from tasks.task_inference import complete_description
from tasks.text_files import DataError

ROWS = {"t": [f"text {i}" for i in range(20)], "y": [i % 2 for i in range(20)]}
COLUMNS = "type=classification,text=t,label=y"


@pytest.fixture
def data():
    features = datasets.Features(
        t=datasets.Value("string"), y=datasets.ClassLabel(names=["no", "yes"])
    )
    return datasets.Dataset.from_dict(ROWS, features=features)


def described(text):
    return complete_description("m", parse_description(f"m={text}:{COLUMNS}"))


def read(found, folder, split="train"):
    return find_task("m", {"m": found.to_json()}).read(folder, split)


def test_a_parquet_file(data, tmp_path):
    data.to_parquet(tmp_path / "d.parquet")
    found = described(tmp_path / "d.parquet")
    assert found.labels == ("no", "yes")
    assert sum(len(read(found, tmp_path, s)) for s in ("train", "dev", "test")) == 20


def test_shards_of_the_hub(data, tmp_path):
    (tmp_path / "data").mkdir()
    for i in range(2):
        name = f"data/train-0000{i}-of-00002.parquet"
        data.shard(2, i, contiguous=True).to_parquet(tmp_path / name)
    data.select(range(4)).to_parquet(tmp_path / "data" / "validation-00000-of-00001.parquet")
    found = described(tmp_path)
    assert read(found, tmp_path).texts == (ROWS["t"],)
    assert read(found, tmp_path, "dev").targets.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("several", [False, True])
def test_a_folder_that_datasets_saved(data, tmp_path, several):
    if several:
        data = datasets.DatasetDict(train=data, validation=data.select(range(6)))
    data.save_to_disk(tmp_path / "saved")
    found = described(tmp_path / "saved")
    assert found.labels == ("no", "yes")
    assert len(read(found, tmp_path, "dev")) == (6 if several else 2)


def test_numbers_and_missing_values_become_text(tmp_path):
    datasets.Dataset.from_dict({"a": [1.5, None, 2.0], "b": [True, False, None]}).to_parquet(
        tmp_path / "d.parquet"
    )
    found = [row for _, row in rows_by_name(tmp_path / "d.parquet", ["a", "b"])]
    assert found == [{"a": "1.5", "b": "1"}, {"a": "", "b": "0"}, {"a": "2", "b": ""}]


def test_what_cannot_be_used_is_refused_in_a_line(data, tmp_path):
    data.to_parquet(tmp_path / "d.parquet")
    with pytest.raises(DataError, match="expected a column 'z', found t, y"):
        list(rows_by_name(tmp_path / "d.parquet", ["z"]))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises(DataError, match="cannot be read") as error:
        list(rows_by_name(tmp_path / "broken.parquet", ["z"]))
    assert "\n" not in str(error.value)
    datasets.Dataset.from_dict({"a": [[1, 2]]}).to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(DataError, match="row 1: expected text or a number"):
        list(rows_by_name(tmp_path / "lists.parquet", ["a"]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="expected a file, found a folder without"):
        list(rows_by_name(tmp_path / "empty", ["a"]))
