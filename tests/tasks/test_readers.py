"""Examples of CS224N files: what is read, and what is refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks import build_task
from tasks.readers import clean_pair_text
from tasks.splits import normalise_text
from tasks.tables import DataError

SST, QQP, STS = (build_task(name) for name in ("sst", "qqp", "sts"))
SST_HEADER = ["", "id", "sentence", "sentiment"]
PAIR_HEADER = ["", "id", "sentence1", "sentence2"]


def test_sst_ids_and_text_are_lowered_and_stripped(write_rows, tmp_path):
    write_rows("ids-sst-train.csv", SST_HEADER, ["0", "  AbC ", "  A Great, GREAT film. ", "4"])
    found = SST.read(tmp_path, "train")
    assert found.ids == ["abc"]
    assert found.texts == (["a great, great film."],)
    assert found.targets.dtype == np.int64
    assert found.targets.tolist() == [4]
    assert found.blank_rows == 0


@pytest.mark.parametrize(("task", "label"), [(QQP, "is_duplicate"), (STS, "similarity")])
def test_pairs_keep_both_texts_and_their_order(task, label, write_rows, tmp_path):
    rows = [["0", "B", "Is it  so?", "It's so.", "1.0"], ["1", "A", "one,two", "Three", "0"]]
    write_rows(task.source.files[0]["dev"], [*PAIR_HEADER, label], *rows)
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


@pytest.mark.parametrize("label", ["1", "1.0", " 1 ", "1e0"])
@pytest.mark.parametrize("task", [SST, STS])
def test_labels_1_and_1_0_are_the_same(task, label, write_rows, tmp_path):
    texts = task.source.text_columns
    header = ["id", *texts, *task.source.label_columns]
    write_rows(task.source.files[0]["train"], header, ["x", *texts, label])
    assert task.read(tmp_path, "train").targets.tolist() == [1]


def test_rows_with_a_blank_label_are_left_out_and_counted(write_rows, tmp_path):
    rows = [["0", "a", "one", "1"], ["1", "b", "two", ""], ["2", "c", "three", "  "]]
    write_rows("ids-sst-train.csv", SST_HEADER, *rows, ["3", "d", "four", "2"])
    found = SST.read(tmp_path, "train")
    assert (found.ids, found.blank_rows, len(found)) == (["a", "d"], 2, 2)
    assert found.targets.tolist() == [1, 2]
    assert found.texts == (["one", "four"],)


def test_quotes_are_the_csv_modules_and_empty_texts_are_examples(tmp_path):
    content = b'id\tsentence\tsentiment\nA\t"say ""hi""\tnow"\t1\nB\tan "inner" one\t2\n'
    (tmp_path / "ids-sst-train.csv").write_bytes(content + b"C\t\t1\nD\t   \t1\n")
    found = SST.read(tmp_path, "train")
    assert found.texts == (['say "hi"\tnow', 'an "inner" one', "", ""],)


def test_a_test_file_has_no_labels_or_some_that_are_not_looked_at(tmp_path):
    for header, more in ((b"0\t\tid\tsentence", b""), (b"0\t\tid\tsentence\tsentiment", b"\tno")):
        rows = [b"0\t0\tX1\tGood." + more, b"1\t1\tx2\tBad." + more]
        (tmp_path / "ids-sst-test-student.csv").write_bytes(b"\n".join([header, *rows, b""]))
        found = SST.read(tmp_path, "test")
        assert (found.ids, found.texts, found.targets) == (["x1", "x2"], (["good.", "bad."],), None)


def test_some_keeps_ids_texts_and_targets_together(write_rows, tmp_path):
    rows = [[str(i), f"i{i}", f"t{i}", str(i % 5)] for i in range(7)]
    write_rows("ids-sst-train.csv", SST_HEADER, *rows)
    found = SST.read(tmp_path, "train")
    drawn: set[str] = set()
    for limit in (1, 3, 6):
        part = found.sample(limit)
        rows = [int(name[1:]) for name in part.ids]
        assert len(set(rows)) == limit
        assert rows == sorted(rows)
        assert part.texts[0] == [found.texts[0][row] for row in rows]
        assert part.targets.tolist() == [found.targets[row] for row in rows]
        assert drawn < set(part.ids)  # a larger draw holds the smaller ones
        drawn = set(part.ids)
    assert found.sample(3).ids != found.ids[:3]
    assert found.sample(None) is found.sample(7) is found.sample(99) is found


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


A = ["0", "a", "one", "1"]
HEAD = b"id\tsentence\tsentiment\n"


def refused(task, folder: Path, split: str = "train") -> str:
    """The one line that reading raises; it names the file."""
    with pytest.raises(DataError) as error:
        task.read(folder, split)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert str(folder / task.source.files[0][split]) in message
    return message


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("What is C++?", "what is c", True),
        ("Café!", "Cafe\u0301", True),
        ("Café", "Cafe", False),
        ("का", "की", False),
        ("I love it \u2764\ufe0f", "I love it", True),
        ("\u0130stanbul", "istanbul", True),
        ("?!", " ", True),
    ],
)
def test_texts_are_equal_if_their_letters_marks_and_digits_are(one, other, equal):
    assert (normalise_text(one) == normalise_text(other)) == equal


def test_a_missing_folder_and_a_folder_in_the_place_of_a_file(tmp_path):
    assert "cannot be read: No such file" in refused(SST, tmp_path / "nowhere")
    (tmp_path / "ids-sst-dev.csv").mkdir()
    assert "cannot be read: Is a directory" in refused(SST, tmp_path, "dev")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["", "x", "sentence", "sentiment"], A], "line 1: expected a column 'id', found x, sente"),
        ([SST_HEADER, A, ["1", "b", "two"]], "line 3: expected 4 tab-separated fields, found 3"),
        (
            [SST_HEADER, A, ["1", "b", "two", "1"], ["2", " A ", "x", "1"]],
            "line 4: ids must be unique",
        ),
        ([SST_HEADER, A, ["1", "b\nc", "two", "1"]], "line 3"),  # it would break predictions' lines
        ([SST_HEADER], "there are no examples (rows without label or text: 0"),
        ([SST_HEADER, ["0", "a", "one", ""], ["1", "b", "x", " "]], "without label or text: 2"),
        # A row that spans lines is known by its first, and lines after it are counted on.
        ([SST_HEADER, ["0", "a", "x\ny\nz", "1"], ["1", "b", "four", "9"]], "line 5: sentiment"),
    ],
)
def test_wrong_rows_are_refused_with_their_line(rows, expected, write_rows, tmp_path):
    write_rows("ids-sst-train.csv", *rows)
    assert expected in refused(SST, tmp_path)


@pytest.mark.parametrize(
    ("task", "label", "expected"),
    [
        *((SST, one, "sentiment: expected 0, 1, 2, 3, 4") for one in ("5", "1.5")),
        *((STS, one, "similarity: expected a number from 0 to 5") for one in ("nan", "5.01")),
    ],
)
def test_labels_outside_of_the_classes_or_the_scale(task, label, expected, write_rows, tmp_path):
    texts = task.source.text_columns
    header = ["id", *texts, *task.source.label_columns]
    write_rows(task.source.files[0]["train"], header, ["a", *texts, label])
    message = refused(task, tmp_path)
    assert f"line 2: {expected}" in message
    assert message.endswith(f"found {label!r}")
