"""Sentences of text, CSV, TSV and JSONL files, and their faults in one line."""

from types import GeneratorType

import pytest

from tasks.tables import read_sentences
from tasks.text_files import DataError

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
    import json

    lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(TEXTS)]
    file = write(tmp_path / "a.jsonl", "\n".join([*lines, "", json.dumps({"text": "a\nb"})]))
    assert list(read_sentences(file, "text")) == [*TEXTS, "a\nb"]


def test_a_file_is_read_as_it_is_asked_for(tmp_path):
    sentences = read_sentences(write(tmp_path / "a.txt", "one\n" * 10))
    assert isinstance(sentences, GeneratorType)
    assert next(sentences) == "one"


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("a.txt", b"one\n\xff\n", None, "line 2: expected UTF-8 text, found byte 0xff"),
        (
            "a.txt",
            "one\n",
            "text",
            "expected a file with columns (.csv, .tsv, .jsonl, .json, .parquet)",
        ),
        ("a.csv", "id,text\n", None, "expected the name of a column, found none"),
        ("a.csv", "", "text", "expected a header line with text, found none"),
        ("a.csv", "id,sentence\n1,a\n", "text", "line 1: expected a column 'text', found id, sen"),
        (
            "a.csv",
            'id,text\n1,"x\ny"\n2,a,b\n',
            "text",
            "line 4: expected 2 comma-separated fields, found 3",
        ),
        ("a.csv", 'id,text\n1,"open\n', "text", "line 2: expected comma-separated fields, found"),
        ("a.jsonl", '{"text": "a"}\n{"text"\n', "text", "line 2: expected JSON"),
        ("a.jsonl", '{"text": 3}\n', "text", "line 1: expected text in 'text', found 3"),
        ("a.jsonl", "[" * 100_000, "text", "line 1: expected JSON"),
        ("missing.txt", None, None, "expected a data file, found no "),
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
