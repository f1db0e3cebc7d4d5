"""CS224N files -> examples: what is refused, in one line."""

from pathlib import Path

import pytest

from tasks import build_task
from tasks.text_files import DataError

SST, QQP, STS = (build_task(name) for name in ("sst", "qqp", "sts"))
SST_HEADER = ["", "id", "sentence", "sentiment"]

A = ["0", "a", "one", "1"]
HEAD = b"id\tsentence\tsentiment\n"


def refused(task, folder: Path, split: str = "train") -> str:
    """The one line that reading raises; it names the file."""
    with pytest.raises(DataError) as error:
        task.read(folder, split)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert str(folder / task.source.files[split]) in message
    return message


def test_a_missing_folder_or_file_and_a_folder_in_its_place(write_rows, tmp_path):
    assert f"found no {tmp_path / 'nowhere'}" in refused(SST, tmp_path / "nowhere")
    write_rows("ids-sst-train.csv", SST_HEADER, A)
    assert "found no" in refused(SST, tmp_path, "dev")
    assert "cannot be read: Not a dir" in refused(SST, tmp_path / "ids-sst-train.csv")
    (tmp_path / "ids-sst-dev.csv").mkdir()
    assert "expected a file, found a folder without" in refused(SST, tmp_path, "dev")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["", "x", "sentence", "sentiment"], A], "line 1: expected a column 'id', found x, sente"),
        ([[*SST_HEADER, "id"], [*A, "1"]], "line 1: expected a column 'id', found it twice"),
        ([SST_HEADER, A, ["1", "b", "two"]], "line 3: expected 4 tab-separated fields, found 3"),
        ([SST_HEADER, A, [*A, "x"]], "line 3: expected 4 tab-separated fields, found 5"),
        (
            [SST_HEADER, A, ["1", "b", "two", "1"], ["2", " A ", "x", "1"]],
            "line 4: expected unique ids",
        ),
        ([SST_HEADER, ["0", "  ", "one", "1"]], "line 2: expected an id, found a blank field"),
        ([SST_HEADER, A, ["1", "b\nc", "two", "1"]], "line 3"),  # it would break predictions' lines
        ([SST_HEADER], "expected at least one example, found only a header line"),
        ([SST_HEADER, ["0", "a", "one", ""], ["1", "b", "x", " "]], "2 rows with a blank label"),
        # A row that spans lines is known by its first, and lines after it are counted on.
        ([SST_HEADER, A, ["1", "b", "y\nz", "9"]], "line 3: sentiment"),
        ([SST_HEADER, ["0", "a", "x\ny\nz", "1"], ["1", "b", "four", "9"]], "line 5: sentiment"),
    ],
)
def test_wrong_rows_are_refused_with_their_line(rows, expected, write_rows, tmp_path):
    write_rows("ids-sst-train.csv", *rows)
    assert expected in refused(SST, tmp_path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected a header line with id, sentence, sentiment, found none"),
        (b"\xef\xbb\xbf", "expected a header line with id, sentence, sentiment, found none"),
        (HEAD.replace(b"e", b"\xe9"), "line 1: expected UTF-8 text, found byte 0xe9"),
        (HEAD + b"a\tone\t1\nb\t\xe9\t1\n", "line 3: expected UTF-8 text, found byte 0xe9"),
        (HEAD.decode().encode("utf-16"), "line 1"),
        (HEAD.replace(b"\t", b","), "line 1: expected a"),
        # An unclosed quote, before few rows and before more than a reader holds at once.
        (HEAD + b'a\tone\t1\nb\t"open\t1\nc\tthree\t1\n', "line 3"),
        (HEAD + b'a\tone\t1\nb\t"open\t1\n' + b"i\ta sentence\t1\n" * 12_000, "line 3"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(content, expected, write_bytes, tmp_path):
    write_bytes("ids-sst-train.csv", content)
    assert expected in refused(SST, tmp_path)


@pytest.mark.parametrize(
    ("task", "label", "expected"),
    [
        *((SST, label, "sentiment: expected a whole number from 0 to 4") for label in
          ("x", "nan", "inf", "-1", "5", "1.5", "1e400", "1,0", "0x1", "1_0")),
        (QQP, "2", "is_duplicate: expected a whole number from 0 to 1"),
        *((STS, label, "similarity: expected a number from 0 to 5") for label in
          ("x", "nan", "-inf", "-0.1", "5.01", "1e400", "2,5")),
    ],
)  # fmt: skip
def test_labels_outside_of_the_classes_or_the_scale(task, label, expected, write_rows, tmp_path):
    texts = task.source.text_columns
    header = ["id", *texts, task.source.label_column]
    write_rows(task.source.files["train"], header, ["a", *texts, label])
    message = refused(task, tmp_path)
    assert f"line 2: {expected}" in message
    assert message.endswith(f"found {label!r}")
