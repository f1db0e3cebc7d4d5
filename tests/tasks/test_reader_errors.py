"""CS224N files -> examples: what is refused, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks import build_task
from tasks.text_files import DataError

SST, QQP, STS = (build_task(name) for name in ("sst", "qqp", "sts"))
SST_HEADER = ["", "id", "sentence", "sentiment"]
PAIR_HEADER = ["", "id", "sentence1", "sentence2"]


def refused(task, folder: Path, split: str = "train") -> str:
    """The one line that reading raises; it names the file."""
    with pytest.raises(DataError) as error:
        task.read(folder, split)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert str(folder / task.source.files[split]) in message
    return message


def test_missing_folder(tmp_path):
    message = refused(SST, tmp_path / "nowhere")
    assert f"found no {tmp_path / 'nowhere'}" in message


def test_missing_file(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "one", "1"])
    assert "found no" in refused(SST, tmp_path, "dev")


def test_a_folder_in_the_place_of_the_file(tmp_path):
    (tmp_path / "ids-sst-train.csv").mkdir()
    assert "expected a file, found a folder without *.arrow files" in refused(SST, tmp_path)


@pytest.mark.parametrize("missing", ["id", "sentence", "sentiment"])
def test_missing_column(missing, write_rows, tmp_path):
    header = ["x" if name == missing else name for name in SST_HEADER]
    write_rows("ids-sst-train.csv", header, ["0", "a", "one", "1"])
    message = refused(SST, tmp_path)
    assert "line 1" in message
    assert f"expected a column {missing!r}" in message
    assert all(name in message for name in header if name)


@pytest.mark.parametrize("twice", ["id", "sentence", "sentiment"])
def test_duplicate_column(twice, write_rows, tmp_path):
    write_rows("ids-sst-train.csv", [*SST_HEADER, twice], ["0", "a", "one", "1", "1"])
    message = refused(SST, tmp_path)
    assert "line 1" in message
    assert f"expected a column {twice!r}, found it twice" in message


BAD_CLASSES = ["x", "nan", "inf", "-inf", "-1", "5", "1.5", "1e400", "1,0", "0x1", "1_0", "None"]
BAD_SCORES = ["x", "nan", "inf", "-inf", "-0.1", "5.01", "1e400", "2,5", "None"]


@pytest.mark.parametrize("label", BAD_CLASSES)
def test_bad_class(label, write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "one", "1"], ["1", "b", "two", label])
    message = refused(SST, tmp_path)
    assert "line 3: sentiment: expected a whole number from 0 to 4" in message
    assert message.endswith(f"found {label!r}")


def test_paraphrase_has_two_classes(write_rows, tmp_path):
    write_rows("quora-train.csv", [*PAIR_HEADER, "is_duplicate"], ["0", "a", "x", "y", "2"])
    assert "line 2: is_duplicate: expected a whole number from 0 to 1" in refused(QQP, tmp_path)


@pytest.mark.parametrize("label", BAD_SCORES)
def test_bad_score(label, write_rows, tmp_path):
    write_rows("sts-train.csv", [*PAIR_HEADER, "similarity"], ["0", "a", "x", "y", label])
    message = refused(STS, tmp_path)
    assert "line 2: similarity: expected a number from 0 to 5" in message
    assert message.endswith(f"found {label!r}")


@pytest.mark.parametrize("row", [["1", "b", "two"], ["1", "b", "two", "1", "x"], ["x"]])
def test_short_and_long_rows(row, write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "one", "1"], row)
    message = refused(SST, tmp_path)
    assert f"line 3: expected 4 tab-separated fields, found {len(row)}" in message


@pytest.mark.parametrize("line", [1, 2, 3])
def test_not_utf_8(line, write_bytes, tmp_path):
    lines = [b"id\tsentence\tsentiment\n", b"a\tone\t1\n", b"b\ttwo\t1\n"]
    lines[line - 1] = lines[line - 1].replace(b"e", b"\xe9").replace(b"o", b"\xe9")
    write_bytes("ids-sst-train.csv", b"".join(lines))
    assert f"line {line}: expected UTF-8 text, found byte 0xe9" in refused(SST, tmp_path)


@pytest.mark.parametrize("again", ["a", " A "])
def test_duplicate_ids_name_both_lines(again, write_rows, tmp_path):
    rows = [["0", "a", "one", "1"], ["1", "b", "two", "1"], ["2", again, "three", "1"]]
    write_rows("ids-sst-train.csv", SST_HEADER, *rows)
    message = refused(SST, tmp_path)
    assert "line 4" in message
    assert "line 2" in message
    assert "'a'" in message


@pytest.mark.parametrize("identity", ["", "  "])
def test_blank_id(identity, write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", identity, "one", "1"])
    assert "line 2: expected an id, found a blank field" in refused(SST, tmp_path)


def test_an_id_that_would_break_the_lines_of_a_prediction_file(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "one", "1"], ["1", "b\nc", "two", "1"])
    assert "line 3" in refused(SST, tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty_file(content, write_bytes, tmp_path):
    write_bytes("ids-sst-train.csv", content)
    assert "expected a header line with id, sentence, sentiment, found none" in refused(
        SST, tmp_path
    )


def test_only_a_header(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER)
    message = refused(SST, tmp_path)
    assert "expected at least one example, found only a header line" in message


def test_only_blank_labels(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "one", ""], ["1", "b", "two", " "])
    assert "found 2 rows with a blank label" in refused(SST, tmp_path)


def test_a_huge_unclosed_quote_is_told_where_it_opens(write_bytes, tmp_path):
    rows = b"".join(b"i%d\ta sentence\t1\n" % i for i in range(12_000))
    content = b'id\tsentence\tsentiment\na\tone\t1\nb\t"open\t1\n' + rows
    write_bytes("ids-sst-train.csv", content)
    assert "line 3" in refused(SST, tmp_path)


def test_an_unclosed_quote_does_not_swallow_the_rows_after_it(write_bytes, tmp_path):
    content = b'id\tsentence\na\tone\nb\t"open\nc\tthree\nd\tfour\n'
    write_bytes("ids-sst-test-student.csv", content)
    assert "line 3" in refused(SST, tmp_path, "test")


def test_line_numbers_after_a_quoted_field_with_line_breaks(write_rows, tmp_path):
    rows = [["0", "a", "one\ntwo\nthree", "1"], ["1", "b", "four", "1"]]
    write_rows("ids-sst-train.csv", SST_HEADER, *rows)
    assert SST.read(tmp_path, "train").texts == (["one\ntwo\nthree", "four"],)
    write_rows("ids-sst-train.csv", SST_HEADER, *rows, ["2", "c", "five", "9"])
    assert "line 6: sentiment" in refused(SST, tmp_path)


def test_a_row_that_spans_lines_is_told_by_its_first(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "x", "1"], ["1", "b", "y\nz", "9"])
    assert "line 3: sentiment" in refused(SST, tmp_path)
