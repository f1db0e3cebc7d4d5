"""Data files: sentences and rows of text, CSV, TSV, JSON lines and Parquet files."""

import json
from datetime import datetime
from decimal import Decimal

import datasets
import pyarrow
import pytest
from pyarrow import parquet

from tasks.own_tasks import task
from tasks.tables import DataError, read_sentences, read_table

TEXTS = ["A cat sleeps.", "Zoë, who said: “no”", 'a "quoted" word', "日本語 🙂"]


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_lines_of_a_text_file_with_blank_ones(tmp_path):
    content = "\ufeff" + "\r\n".join(TEXTS) + "\n\nlast without a line break"
    file = write(tmp_path / "a.txt", content)
    assert list(read_sentences(file)) == [*TEXTS, "", "last without a line break"]
    assert list(read_sentences(write(tmp_path / "no-ending", "one\ntwo\n"))) == ["one", "two"]


@pytest.mark.parametrize("name", ["a.csv", "a.CSV"])
def test_a_comma_separated_column(tmp_path, name):
    rows = "".join(f'{i},"{text.replace(chr(34), chr(34) * 2)}"\n' for i, text in enumerate(TEXTS))
    file = write(tmp_path / name, "\ufeffid,text\n" + rows + '\n9,"two\nlines"\n')
    assert list(read_sentences(file, "text")) == [*TEXTS, "two\nlines"]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tabs_and_commas_with_any_line_ends(tmp_path, name, end):
    file = write(tmp_path / name, end.join(["id\ttext", "0\ta, b", "1\tc", ""]))
    assert list(read_sentences(file, "text")) == ["a, b", "c"]
    file = write(tmp_path / "a.csv", end.join(["id,text", "1,a", '2,"b, c"', "3,d", ""]))
    assert list(read_sentences(file, "text")) == ["a", "b, c", "d"]


def test_a_field_of_json_lines(tmp_path):
    lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(TEXTS)]
    file = write(tmp_path / "a.jsonl", "\n".join([*lines, "", json.dumps({"text": "a\nb"})]))
    assert list(read_sentences(file, "text")) == [*TEXTS, "a\nb"]


def test_half_of_a_surrogate_pair_is_replaced(tmp_path):
    file = write(tmp_path / "a.jsonl", r'{"text": "\ud83d\ude42 \ud83d x"}')
    assert list(read_sentences(file, "text")) == ["🙂 ? x"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"text\none\xff\n", "line 2: expected UTF-8 text, found byte 0xff"),
        ("a.csv", b"id,sentence\n1,a\n", "line 1: expected a column 'text', found id, sentence"),
        ("a.csv", b"text,a,text\nb,1,2\n", "expected a column 'text', found it twice"),
        ("a.csv", b'id,text\n1,"x\ny"\n2,a,b\n', "line 4: expected 2 comma-separated fields"),
        ("a.csv", b'id,text\n1,"open\n', "line 2: expected comma-separated fields, found"),
        ("a.jsonl", b'{"text": "a"}\n{"text"\n', "line 2: expected JSON"),
        ("a.jsonl", b'{"text": {}}\n', "line 1: expected text or a number in 'text', found {}"),
        ("a.jsonl", b'{"text": "a"}\n["text"]', "line 2: expected a JSON object in each"),
        ("a.parquet", b"PAR1 not at all", "cannot be read"),
    ],
)
def test_faults_name_file_and_line(tmp_path, name, content, expected):
    file = write(tmp_path / name, content)
    with pytest.raises(DataError) as error:
        list(read_sentences(file, "text"))
    message = str(error.value)
    assert message.startswith(str(file))
    assert expected in message
    assert "\n" not in message


ROWS = {"t": [f"text {i}" for i in range(20)], "y": [i % 2 for i in range(20)]}


@pytest.fixture
def data():
    features = datasets.Features(
        t=datasets.Value("string"), y=datasets.ClassLabel(names=["no", "yes"])
    )
    return datasets.Dataset.from_dict(ROWS, features=features)


def read(found, folder, split="train"):
    return found.build().read(folder, split)


def test_a_parquet_file(data, tmp_path):
    data.to_parquet(tmp_path / "d.parquet")
    found = task("m", train=tmp_path / "d.parquet", text="t", label="y")
    assert found.labels == ("no", "yes")
    assert sum(len(read(found, tmp_path, s)) for s in ("train", "dev", "test")) == 20


def test_numbers_dates_and_missing_values_become_text(tmp_path):
    moments = pyarrow.array([datetime(2024, 1, 31), None], pyarrow.timestamp("s"))
    table = {"a": [1.5, 2.0], "b": [True, None], "c": [Decimal("1.50"), None], "d": moments}
    parquet.write_table(pyarrow.table(table), tmp_path / "d.parquet")
    found = [row for _, row in read_table(tmp_path / "d.parquet").fields([*table])]
    assert found == [
        {"a": "1.5", "b": "1", "c": "1.50", "d": "2024-01-31 00:00:00"},
        {"a": "2", "b": "", "c": "", "d": ""},
    ]
