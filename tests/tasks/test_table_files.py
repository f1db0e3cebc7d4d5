"""Data files: sentences and rows of text, CSV, TSV, JSON lines and Parquet files."""

import json
from datetime import date, datetime
from decimal import Decimal
from types import GeneratorType

import datasets
import pyarrow
import pytest
from pyarrow import parquet

from tasks.own_tasks import task
from tasks.tables import DataError, columns_of, read_sentences, rows_by_name, whole_rows

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


@pytest.mark.parametrize("header", ['"a\nb",text', '"a\n\nb\n",text', "a\ttext", "a,text"])
def test_a_header_may_have_line_breaks_in_quotes(tmp_path, header):
    comma = "," if header.endswith(",text") else "\t"
    file = write(tmp_path / "a.csv", f"{header}\nx{comma}one\n")
    name = header.split('"')[1] if '"' in header else "a"
    assert columns_of(file) == [name, "text"]
    assert list(whole_rows(file, ["text"])) == [([name, "text"], ["x", "one"])]


def test_a_field_of_json_lines(tmp_path):
    lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(TEXTS)]
    file = write(tmp_path / "a.jsonl", "\n".join([*lines, "", json.dumps({"text": "a\nb"})]))
    assert list(read_sentences(file, "text")) == [*TEXTS, "a\nb"]


def test_all_fields_of_a_row_need_different_names(tmp_path):
    with pytest.raises(DataError, match="expected a column 'a', found it twice"):
        list(whole_rows(write(tmp_path / "a.csv", "text,a,a\nb,1,2\n"), ["text"]))


def test_half_of_a_surrogate_pair_is_replaced(tmp_path):
    file = write(tmp_path / "a.jsonl", r'{"text": "\ud83d\ude42 \ud83d x"}')
    assert list(read_sentences(file, "text")) == ["🙂 ? x"]


def test_a_file_is_read_as_it_is_asked_for(tmp_path):
    sentences = read_sentences(write(tmp_path / "a.txt", "one\n" * 10))
    assert isinstance(sentences, GeneratorType)
    assert next(sentences) == "one"


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("a.txt", b"one\n\xff\n", None, "line 2: expected UTF-8 text, found byte 0xff"),
        ("a.csv", "id,sentence\n1,a\n", "text", "line 1: expected a column 'text', found id, sen"),
        (
            "a.csv",
            'id,text\n1,"x\ny"\n2,a,b\n',
            "text",
            "line 4: expected 2 comma-separated fields, found 3",
        ),
        ("a.csv", 'id,text\n1,"open\n', "text", "line 2: expected comma-separated fields, found"),
        ("a.jsonl", '{"text": "a"}\n{"text"\n', "text", "line 2: expected JSON"),
        (
            "a.jsonl",
            '{"text": {}}\n',
            "text",
            "line 1: expected text or a number in 'text', found {}",
        ),
        ("a.jsonl", '{"text": "a"}\n["text"]', "text", "line 2: expected a JSON object in each"),
        ("missing.txt", None, None, "cannot be read: No such file"),
    ],
)
def test_faults_name_file_and_line(tmp_path, name, content, column, expected):
    file = tmp_path / name
    if content is not None:
        write(file, content)
    with pytest.raises(DataError) as error:
        list(read_sentences(file, column))
    message = str(error.value)
    assert message.startswith(str(file))
    assert expected in message
    assert "\n" not in message


ROWS = {"t": [f"text {i}" for i in range(20)], "y": [i % 2 for i in range(20)]}
COLUMNS = "type=classification,text=t,label=y"


@pytest.fixture
def data():
    features = datasets.Features(
        t=datasets.Value("string"), y=datasets.ClassLabel(names=["no", "yes"])
    )
    return datasets.Dataset.from_dict(ROWS, features=features)


def description(text):
    return task(f"m={text}:{COLUMNS}")


def read(found, folder, split="train"):
    return found.build().read(folder, split)


def test_a_parquet_file(data, tmp_path):
    data.to_parquet(tmp_path / "d.parquet")
    found = description(tmp_path / "d.parquet")
    assert found.labels == ("no", "yes")
    assert sum(len(read(found, tmp_path, s)) for s in ("train", "dev", "test")) == 20


def test_numbers_and_missing_values_become_text(tmp_path):
    datasets.Dataset.from_dict({"a": [1.5, None, 2.0], "b": [True, False, None]}).to_parquet(
        tmp_path / "d.parquet"
    )
    found = [row for _, row in rows_by_name(tmp_path / "d.parquet", ["a", "b"])]
    assert found == [{"a": "1.5", "b": "1"}, {"a": "", "b": "0"}, {"a": "2", "b": ""}]


def test_decimals_and_dates_become_text(tmp_path):
    moments = pyarrow.array([datetime(2024, 1, 31), None], pyarrow.timestamp("s"))
    table = {"a": [Decimal("1.50"), None], "b": moments, "c": [date(2024, 1, 31), None]}
    parquet.write_table(pyarrow.table(table), tmp_path / "d.parquet")
    first, second = (row for _, row in rows_by_name(tmp_path / "d.parquet", ["a", "b", "c"]))
    assert first == {"a": "1.50", "b": "2024-01-31 00:00:00", "c": "2024-01-31"}
    assert second == {"a": "", "b": "", "c": ""}


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("d.parquet", {"t": ["a"], "y": [0]}, "z", "expected a column 'z', found t, y"),
        ("broken.parquet", b"PAR1 not at all", "z", "cannot be read"),
        ("lists.parquet", {"a": [[1, 2]]}, "a", "line 1: expected text or a number"),
    ],
)
def test_invalid_parquet_files_are_refused_in_one_line(tmp_path, name, content, column, expected):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        datasets.Dataset.from_dict(content).to_parquet(path)
    with pytest.raises(DataError, match=expected) as error:
        list(rows_by_name(path, [column]))
    assert "\n" not in str(error.value)
