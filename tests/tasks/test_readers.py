"""CS224N files -> examples: what is understood, and what is refused in one line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks import build_task
from tasks.readers import DataError, clean_pair_text, clean_sentence, read_examples

SST, QQP, STS = (build_task(name) for name in ("sst", "qqp", "sts"))
SST_HEADER = ["", "id", "sentence", "sentiment"]
PAIR_HEADER = ["", "id", "sentence1", "sentence2"]


def refused(task, folder: Path, split: str = "train") -> str:
    """The one line that reading raises; it names the file."""
    with pytest.raises(DataError) as error:
        task.read(folder, split)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert str(folder / task.files[split]) in message
    return message


# What is understood


def test_sst_ids_and_text_are_lowered_and_stripped(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "  AbC ", "  A Great, GREAT film. ", "4"])
    found = SST.read(tmp_path, "train")
    assert found.ids == ["abc"]
    assert found.texts == (["a great, great film."],)
    assert found.targets.dtype == np.int64
    assert found.targets.tolist() == [4]
    assert found.blank_labels == 0


@pytest.mark.parametrize(("task", "label"), [(QQP, "is_duplicate"), (STS, "similarity")])
def test_pairs_keep_both_texts_and_their_order(task, label, write_rows, tmp_path):
    write_rows(
        task.files["dev"],
        [*PAIR_HEADER, label],
        ["0", "B", "Is it  so?", "It's so.", "1.0"],
        ["1", "A", "one,two", "Three", "0"],
    )
    found = task.read(tmp_path, "dev")
    assert found.ids == ["b", "a"]
    assert found.texts == (["is it so ?", "one ,two"], ["it 's so .", "three"])
    assert found.targets.tolist() == [1, 0]
    assert found.targets.dtype == (np.int64 if task is QQP else np.float32)


def test_columns_are_found_by_name_in_any_order(write_rows, tmp_path):
    write_rows(
        "ids-sst-train.csv",
        ["sentiment", "", "sentence", "", "more", "id"],
        ["3", "0", "text", "0", "more", "x"],
    )
    found = SST.read(tmp_path, "train")
    assert (found.ids, found.texts, found.targets.tolist()) == (["x"], (["text"],), [3])


def test_header_of_the_sst_test_file(write_bytes, tmp_path):
    write_bytes("ids-sst-test-student.csv", b"0\t\tid\tsentence\n0\t0\tX1\tGood.\n1\t1\tx2\tBad.\n")
    found = SST.read(tmp_path, "test")
    assert (found.ids, found.texts, found.targets) == (["x1", "x2"], (["good.", "bad."],), None)


def test_a_test_file_may_carry_labels_that_are_not_looked_at(write_rows, tmp_path):
    write_rows("ids-sst-test-student.csv", SST_HEADER, ["0", "x", "text", "no label"])
    assert SST.read(tmp_path, "test").targets is None


@pytest.mark.parametrize("label", ["1", "1.0", " 1 ", "1e0", "01"])
@pytest.mark.parametrize("task", [SST, QQP, STS])
def test_labels_1_and_1_0_are_the_same(task, label, write_rows, tmp_path):
    header = ["id", *task.text_columns, task.label_column]
    write_rows(task.files["train"], header, ["x", *["t"] * len(task.text_columns), label])
    assert task.read(tmp_path, "train").targets.tolist() == [1]


def test_similarities_keep_their_fractions(write_rows, tmp_path):
    rows = [[str(i), str(i), "a", "b", label] for i, label in enumerate(["0", "5", "2.25", "4.8"])]
    write_rows("sts-train.csv", [*PAIR_HEADER, "similarity"], *rows)
    expected = np.array([0, 5, 2.25, 4.8], np.float32)
    assert np.array_equal(STS.read(tmp_path, "train").targets, expected)


def test_rows_with_a_blank_label_are_left_out_and_counted(write_rows, tmp_path):
    rows = [["0", "a", "one", "1"], ["1", "b", "two", ""], ["2", "c", "three", "  "]]
    write_rows("ids-sst-train.csv", SST_HEADER, *rows, ["3", "d", "four", "2"])
    found = SST.read(tmp_path, "train")
    assert (found.ids, found.blank_labels, len(found)) == (["a", "d"], 2, 2)
    assert found.targets.tolist() == [1, 2]
    assert found.texts == (["one", "four"],)


def test_quotes_are_the_csv_modules(write_bytes, tmp_path):
    content = b'id\tsentence\tsentiment\nA\t"say ""hi""\tnow"\t1\nB\tan "inner" one\t2\n'
    write_bytes("ids-sst-train.csv", content)
    found = SST.read(tmp_path, "train")
    assert found.texts == (['say "hi"\tnow', 'an "inner" one'],)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda b: b"\xef\xbb\xbf" + b, id="byte-order mark"),
        pytest.param(lambda b: b.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda b: b.rstrip(b"\n"), id="no last line end"),
        pytest.param(lambda b: b + b"\n\n", id="blank lines at the end"),
        pytest.param(lambda b: b.replace(b"\n", b"\n\n"), id="blank lines between"),
    ],
)
def test_line_ends_and_byte_order_mark(change, write_bytes, tmp_path):
    content = "id\tsentence\tsentiment\nx\tCafé — 日本\t1\ny\tb\t0\n".encode()
    write_bytes("ids-sst-train.csv", change(content))
    found = SST.read(tmp_path, "train")
    assert found.ids == ["x", "y"]
    assert found.texts == (["café — 日本", "b"],)


def test_empty_texts_are_examples(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "", "1"], ["1", "b", "   ", "1"])
    assert SST.read(tmp_path, "train").texts == (["", ""],)


def test_some_keeps_ids_texts_and_targets_together(write_rows, tmp_path):
    rows = [[str(i), f"i{i}", f"t{i}", str(i % 5)] for i in range(7)]
    write_rows("ids-sst-train.csv", SST_HEADER, *rows)
    found = SST.read(tmp_path, "train")
    drawn: set[str] = set()
    for limit in (1, 3, 6):
        part = found.some(limit)
        rows = [int(name[1:]) for name in part.ids]
        assert len(set(rows)) == limit
        assert rows == sorted(rows)
        assert part.texts[0] == [found.texts[0][row] for row in rows]
        assert part.targets.tolist() == [found.targets[row] for row in rows]
        assert drawn < set(part.ids)  # a larger draw holds the smaller ones
        drawn = set(part.ids)
    assert found.some(3).ids != found.ids[:3]
    assert found.some(None) is found.some(7) is found.some(99) is found


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(TEXTS)
def test_pair_text_is_cleaned_as_the_starter_code_does(s):
    reference = " ".join(
        s.lower()
        .replace(".", " .")
        .replace("?", " ?")
        .replace(",", " ,")
        .replace("'", " '")
        .split()
    )
    assert clean_pair_text(s) == reference


@given(TEXTS)
def test_sentences_are_lowered_and_stripped(s):
    assert clean_sentence(s) == s.lower().strip()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8))
def test_what_the_csv_module_wrote_is_read_back(tmp_path, pairs):
    path = tmp_path / "any.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL)
        writer.writerow(["id", "a", "b"])
        writer.writerows((str(i), *pair) for i, pair in enumerate(pairs))
    found = read_examples(path, ("a", "b"), clean_text=str)
    assert list(zip(*found.texts, strict=True)) == pairs


# What is refused


def test_missing_folder(tmp_path):
    message = refused(SST, tmp_path / "nowhere")
    assert f"found no {tmp_path / 'nowhere'}" in message


def test_missing_file(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "a", "one", "1"])
    assert "found no" in refused(SST, tmp_path, "dev")


def test_a_folder_in_the_place_of_the_file(tmp_path):
    (tmp_path / "ids-sst-train.csv").mkdir()
    assert "directory" in refused(SST, tmp_path)


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
