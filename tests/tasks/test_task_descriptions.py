"""Own tasks: descriptions as flags and YAML, lists from Python; what is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from common.errors import SettingsError, UserError
from multitask import RunConfig, task
from tasks import find_task, in_order
from tasks.data import small_split_notices
from tasks.described import DescriptionError, parse_description
from tasks.own_types.base import TaskDescription
from tasks.readers import Examples
from tasks.task_description import from_json
from tasks.task_inference import description_lines
from tasks.text_files import DataError
from tests.tasks.sources import described

ROWS = [("a cat", "ein Kater", "ja"), ("a dog", "der Mond", "nein"), ("the sun", "die Sonne", "ja")]
PAIR = "type=classification,text=english,text=german,label=same?"
FRAME = pd.DataFrame({"a": ["x", "y"], "b": ["z", "w"]})


@pytest.fixture
def file(tmp_path):
    """A CSV file of 30 pairs with odd names of columns."""
    lines = [f"{a},{b} {i},{c}" for i in range(10) for a, b, c in ROWS]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["english,german,same?", *lines]) + "\n")
    return path


def test_a_flag_describes_a_task(file):
    found = described(f"mine={file}:{PAIR}")
    assert found == TaskDescription(
        "mine", "classification", str(file), ("english", "german"), "same?", labels=("ja", "nein")
    )
    assert from_json("mine", json.loads(json.dumps(found.to_json()))) == found


def test_yaml_describes_the_same_of_files_beside_it_and_reads_yes_as_a_text(file):
    text = "train: pairs.csv\ntype: classification\ntext: [english, german]\nlabel: same?\n"
    (file.parent / "task.yaml").write_text(text)
    found = described(f"mine={file.parent}/task.yaml")
    assert found == described(f"mine={file}:{PAIR}")
    more = "labels: [yes, no]\nquotes: no\n"
    (file.parent / "task.yaml").write_text(text + more)
    found = parse_description(f"m={file.parent}/task.yaml")
    assert (found["labels"], found["quotes"]) == (["yes", "no"], "no")
    plain = "train: 2e3.csv\ntype: classification\ntext: true_text\nlabel: 1e5x\n"
    (file.parent / "task.yaml").write_text(plain + "labels: [1e5, true positive]\n")
    found = parse_description(f"m={file.parent}/task.yaml")
    assert (found["text"], found["label"]) == (["true_text"], ["1e5x"])
    assert (found["labels"], Path(found["train"]).name) == (["1e5", "true positive"], "2e3.csv")
    for wrong, line in (
        ("labels: [true, false]\n", "labels: expected texts, in quotes"),
        ("text: german\n", "expected each key once, found text twice"),
    ):
        (file.parent / "task.yaml").write_text(text + wrong)
        with pytest.raises(DescriptionError, match=line):
            parse_description(f"m={file.parent}/task.yaml")


def test_own_tasks_come_after_the_built_in_ones():
    assert in_order(["zebra", "sts", "ant", "sst", "ant"]) == ("sst", "sts", "zebra", "ant")


def test_a_comma_in_a_name_is_escaped():
    found = parse_description(r"my=a:b.csv:type=classification,text=yes\, no,label=c")
    assert found["text"] == ["yes, no"]
    assert found["train"] == "a:b.csv"


def test_one_file_is_parted_into_three(file):
    own = find_task("mine", {"mine": described(f"mine={file}:{PAIR}").to_json()})
    found = {split: own.read(file.parent, split) for split in own.source.splits}
    ids = [one for examples in found.values() for one in examples.ids]
    assert sorted(ids, key=int) == [str(i) for i in range(1, 31)]
    assert set(found["train"].targets) == {0, 1}
    assert own.kind.class_names == ("ja", "nein")
    assert (own.output.show(1), own.output.parse("nein")) == ("nein", 1)


def test_rows_without_a_text_are_skipped_and_counted(tmp_path):
    rows = [f"text {i},{'ab'[i % 2]}" for i in range(20)]
    (tmp_path / "f.csv").write_text("\n".join(["x,y", *rows, " ,a", ",b", "text,"]) + "\n")
    content = described(f"m={tmp_path}/f.csv:type=classification,text=x,label=y").to_json()
    found = find_task("m", {"m": content})
    splits = [found.read(tmp_path, split) for split in ("train", "dev", "test")]
    assert sum(map(len, splits)) == 20
    assert sum(one.blank_rows for one in splits) == 3


def test_few_dev_examples_and_rare_classes_are_noticed(tmp_path):
    built = task([f"text {i}" for i in range(21)], [*"ab" * 10, "c"], name="m", folder=tmp_path)
    found = find_task("m", {"m": built.to_json()})
    parts = {"train": [0, 0, 1, 2], "dev": [0, 0, 0, 0]}
    splits = {name: Examples([], (), np.array(targets)) for name, targets in parts.items()}
    assert list(small_split_notices(found, splits)) == [
        "scores on 4 dev examples are rough: one of them is 25.0 points",
        "classes with one example only, to be merged with others: b, c",
    ]
    pairs = task([("a", "b")] * 9, [0.5, 1.0, 2.0] * 3, name="n", folder=tmp_path)
    similar = find_task("n", {"n": pairs.to_json()})
    assert list(small_split_notices(similar, splits)) == ["scores on 4 dev examples are rough"]
    enough = {name: Examples([], (), np.arange(300) % 3) for name in parts}
    assert not list(small_split_notices(found, enough))
    parts = {name: Examples([], (), np.arange(300) % 2) for name in parts}
    assert list(small_split_notices(found, parts, limited=True)) == [
        "classes without a training example under the limit: c",
        "classes without a dev example, so that no score shows how well they are found: c",
    ]


@pytest.mark.parametrize(
    ("texts", "labels", "notice"),
    [
        (1, ["1", "2", "3", "4", "5"], None),
        (1, ["High", "low", "high"], "labels 'High' and 'high' are two classes: correct the"),
        (1, ["1", "1.0", "2"], "labels '1' and '1.0' are the same number, but two classes"),
        (
            1,
            ["good", "NA", "bad"],
            "if class 'NA' stands for a missing value, leave its cells blank",
        ),
        (1, ["1.5", "2", "abc"], "labels are numbers and words (2 numbers; abc): each is a class"),
        (
            1,
            ["1.5", "2"],
            "labels look like numbers on a scale, but are classes without an order; "
            "type=regression learns them as numbers",
        ),
        (2, [str(n) for n in range(21)], "type=similarity learns them as numbers"),
    ],
)
def test_labels_that_may_be_no_classes_are_noticed(texts, labels, notice, tmp_path):
    rows = "".join(f"text {n},other {n},{label}\n" for n, label in enumerate(labels * 2))
    (tmp_path / "l.csv").write_text("a,b,y\n" + rows)
    columns = ",".join(f"text={name}" for name in "ab"[:texts])
    own = described(f"own={tmp_path}/l.csv:type=classification,{columns},label=y")
    first, *more = description_lines(own)
    names = "'a' and 'b'" if texts == 2 else "'a'"
    assert first.startswith(f"classification of {names}, {len(labels)} classes in column 'y': ")
    assert len(first) < 200
    if notice is None:
        assert more == []
    else:
        (line,) = more
        assert notice in line


@pytest.mark.parametrize("labelled", [True, False])
def test_files_of_dev_and_test_are_used_as_they_are(file, labelled):
    rest = f"dev={file.parent}/dev.csv,test={file.parent}/test.csv"
    (file.parent / "dev.csv").write_text("same?,english,german\nja,x,y\n")
    header, row = ("same?,english,german", "nein,x,y") if labelled else ("english,german", "x,y")
    (file.parent / "test.csv").write_text(f"{header}\n{row}\n")
    own = find_task("mine", {"mine": described(f"mine={file}:{PAIR},{rest}").to_json()})
    assert len(own.read(file.parent, "train")) == 30
    assert own.read(file.parent, "dev").texts == (["x"], ["y"])
    targets = own.read(file.parent, "test").targets
    assert targets == [1] if labelled else targets is None


def test_similarities_keep_the_scale_of_their_file(tmp_path):
    (tmp_path / "s.tsv").write_text("a\tb\ty\nq\tr\t-1\ns\tt\t3.5\nu\tv\t\nw\tx\t2\n")
    columns = "type=similarity,text=a,text=b,label=y"
    found = described(f"mine={tmp_path}/s.tsv:{columns}")
    assert (found.low, found.high) == (-1, 3.5)
    own = find_task("mine", {"mine": found.to_json()})
    assert own.output.show(0.0) == "-1.0"
    assert own.output.parse("3.5") == 4.5
    assert own.build_head(8).scale == 4.5
    wider = described(f"mine={tmp_path}/s.tsv:{columns},low=-2,high=5")
    assert (wider.low, wider.high) == (-2, 5)


def test_labels_can_be_given_in_an_order_of_their_own_and_are_checked(file):
    assert described(f"mine={file}:{PAIR},labels=nein|ja").labels == ("nein", "ja")
    own = find_task("m", {"m": described(f"m={file}:{PAIR},labels=nein|vielleicht").to_json()})
    with pytest.raises(DataError, match=r"line 2: same\?: expected nein, vielleicht, found 'ja'"):
        own.read(file.parent, "train")
    for labels, found in (("a|b|a", "'a' twice"), ("a|", "''"), (r"a|b \, c", "'b , c'")):
        with pytest.raises(DataError, match=f"found {found}"):
            described(f"m={file}:{PAIR},labels={labels}")


@pytest.mark.parametrize(
    ("label", "meant"), [("negatve", "negative"), ("Neutral", "neutral"), ("yas", "yes"), ("2", "")]
)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_misspelt_label_of_dev_or_test_gets_a_suggestion(split, label, meant, tmp_path):
    names = ("negative", "neutral", "yes", "20")
    rows = "".join(f"text {name},{name}\n" for name in names)
    for one in ("train", "dev", "test"):
        wrong = f"a text,{label}\n" if one == split else ""
        (tmp_path / f"{one}.csv").write_text(f"text,mood\n{rows}{wrong}", "utf-8")
    found = described(f"m={tmp_path}:type=classification,text=text,label=mood")
    end = f"; did you mean {meant}\\?$" if meant else "$"
    line = f"{split}.csv, line 6: mood: expected .*, yes, found '{label}'{end}"
    with pytest.raises(DataError, match=line):
        find_task("m", {"m": found.to_json()}).read(tmp_path, split)


ONE = "m=a.csv:type=classification,text=a,label=b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mine.csv", "expected NAME=FILE:type=...,text=...,label=..., found 'Mine.csv'"),
        ("sst=a.csv:type=similarity", "expected another name than sst, which is reserved"),
        ("m=a.csv:type=similarity,text=a,label=b", "expected two text columns, found 1"),
        ("m=a.csv:type=classification,label=b", "m: needs text"),
        ("m=a.csv:type=classification,text=a,label=b,colour=c", "found 'colour'"),
        ("m=a.csv:type=similarity,text=a,text=b,label=c,low=x", "low: Expected"),
        ("m=a.csv:type=classification,text", "expected key=value"),
        ("m=nowhere.yaml", "expected a task in YAML, found no file"),
        (ONE.replace("label=b", "label=a"), "label: expected another column than the text, found"),
    ],
)
def test_what_describes_no_task_is_refused_in_one_line(text, expected):
    with pytest.raises(DescriptionError, match=expected.replace("(", r"\(")) as error:
        parse_description(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rows", "more", "expected"),
    [
        ("a,y\nx,1\nz,1\n", "", "expected two classes or more, found 1"),
        ("a,b\nx,1\n", "", "line 1: expected a column 'y'"),
        ("a,y\nx,no\nz,n\u200bo\n", "", r"different, found 'no' and 'n.u200bo'"),
        ("a,y\nx,1\nz,2\n", ",dev=nope.csv", r"nope\.csv: expected the file dev of m, found none"),
        (
            "a,y\n" + "".join(f"x,{i / 7}\n" for i in range(1100)),
            "",
            "line 1002: expected at most 1000 class",
        ),
    ],
    ids=["one class", "no column", "an invisible character", "no dev", "numbers by mistake"],
)
def test_what_a_file_lacks_is_refused_with_its_place(tmp_path, rows, more, expected):
    (tmp_path / "f.csv").write_text(rows)
    with pytest.raises(DataError, match=expected):
        described(f"m={tmp_path}/f.csv:type=classification,text=a,label=y{more}")


def test_labels_may_be_signs_or_numbers_in_their_order_and_ids_may_differ_in_case(tmp_path):
    columns, signs = "type=classification,text=t,label=y", ("+", "👩\u200d👧")
    rows = "".join(f"{'Aa'[i % 2]}{i // 2},t {i},{signs[i % 2]}\n" for i in range(20))
    (tmp_path / "f.csv").write_text("key,t,y\n" + rows)
    found = described(f"m={tmp_path}/f.csv:{columns},id=key")
    assert found.labels == signs
    assert from_json("m", found.to_json()) == found
    examples = find_task("m", {"m": found.to_json()}).read(tmp_path, "train")
    assert {one[0] for one in examples.ids} == {"A", "a"}
    lines = [json.dumps({"t": "x", "y": y}) for y in (10, 9, 1, 10)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    assert described(f"m={tmp_path}/c.jsonl:{columns}").labels == ("1", "9", "10")


@pytest.mark.parametrize(
    "change",
    [{"type": "other"}, {"texts": "a"}, {"labels": ["one"]}, {"labels": [1, 2]}, {"colour": "red"}],
    ids=str,
)
def test_a_stored_description_is_checked(file, change):
    stored = described(f"m={file}:{PAIR}").to_json() | change
    with pytest.raises(UserError, match="own_tasks"):
        from_json("m", stored)
    with pytest.raises(UserError, match="own_tasks"):
        from_json("../m", described(f"m={file}:{PAIR}").to_json())


def test_a_folder_has_its_files_by_split(file):
    folder = file.parent / "folder"
    folder.mkdir()
    file.rename(folder / "train.csv")
    (folder / "validation.csv").write_text("same?,english,german\nja,x,y\nnein,x,z\n")
    found = described(f"m={folder}:{PAIR}")
    assert (found.train, found.dev, found.test) == (
        str(folder / "train.csv"),
        str(folder / "validation.csv"),
        None,
    )
    own = find_task("m", {"m": found.to_json()})
    np.testing.assert_array_equal(own.read(folder, "dev").targets, [0, 1])
    with pytest.raises(DataError, match=r"expected a file train\.csv"):
        described(f"m={file.parent}:{PAIR}")


def test_lists_become_a_task_over_a_file(tmp_path):
    texts, labels = [f"text {i}" for i in range(20)], ["yes", "no"] * 10
    mine = task(texts, np.array(labels), name="mine", folder=tmp_path)
    assert mine.to_json()["type"] == "classification"
    assert RunConfig(tasks=(mine, "sst")).tasks == ("mine", "sst")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("labels", "of_texts", "of_pairs"),
    [
        ([0, 1] * 5, "classification", "classification"),
        ([1.0, 2.0] * 5, "classification", "similarity"),
        ([0.5, 1, 2, 5, 3.5] * 2, "regression", "similarity"),
        ([0.5, 1.0] * 5, "regression", "similarity"),
        ([["a"], ["b", "a"]] * 5, "multi-label", "multi-label"),
    ],
)
def test_the_type_of_lists_follows_from_their_labels(labels, of_texts, of_pairs, tmp_path):
    texts = [f"text {i}" for i in range(10)]
    pairs = [(f"one {i}", f"other {i}") for i in range(10)]
    found = [task(rows, labels, folder=tmp_path).type for rows in (texts, pairs)]
    assert found == [of_texts, of_pairs]
    if not isinstance(labels[0], list):
        classes = [*dict.fromkeys(labels)]
        assert task(texts, labels, classes=classes, folder=tmp_path).type == "classification"


@pytest.mark.parametrize(
    ("labels", "of_texts", "of_pairs"),
    [
        (pd.Series([0, 1, None] * 7), "classification", None),
        (pd.Series([0, 1, None] * 7, dtype="Int64"), "classification", "classification"),
        ([0, 1, None] * 7, "classification", "classification"),
        (["no", math.nan, "yes"] * 7, "classification", "classification"),
        (np.array([0.5, math.nan, 1.0] * 7), "regression", "similarity"),
        ([["a"], None, ["b", "a"]] * 7, "multi-label", "multi-label"),
    ],
    ids=str,
)
def test_missing_labels_decide_no_type_and_are_blank(labels, of_texts, of_pairs, tmp_path):
    texts = [f"text {i}" for i in range(21)]
    pairs = [(f"one {i}", f"other {i}") for i in range(21)]
    if of_pairs is None:  # as pandas stores whole numbers, too
        with pytest.raises(SettingsError, match="type: expected similarity or classification, as"):
            task(pairs, labels, name="m", folder=tmp_path)
        assert task(pairs, labels, folder=tmp_path, type="similarity").type == "similarity"
        of_pairs = "classification"
    for rows, expected in ((texts, of_texts), (pairs, of_pairs)):
        given = {} if rows is texts else {"type": expected}
        blank = {"blank": "unknown"} if expected == "multi-label" else {}
        mine = task(rows, labels, name="m", folder=tmp_path, **blank, **given)
        assert mine.type == expected
        own = find_task("m", {"m": mine.to_json()})
        splits = [own.read(tmp_path, split) for split in own.source.splits]
        assert sum(one.blank_rows for one in splits) == 7
        assert sum(map(len, splits)) == 14


def test_an_array_of_pairs_is_the_list_of_its_pairs(tmp_path):
    pairs, labels = [(f"one {i}", f"other {i}") for i in range(20)], [0, 1] * 10
    expected = task(pairs, labels, folder=tmp_path)
    assert expected.texts == ("text", "other text")
    for rows in (np.array(pairs), np.array(pairs, object), [*np.array(pairs)]):
        assert task(rows, labels, folder=tmp_path) == expected


@pytest.mark.parametrize(
    ("first", "labels", "options", "expected"),
    [
        (None, None, {}, "texts: expected a name or a list of texts, found None"),
        (["a", None], ["x", "y"], {}, "texts: expected texts or pairs of texts, found None"),
        ([b"ab", b"cd"], ["x", "y"], {}, "texts: expected texts or pairs of texts, found b'ab'"),
        (["a"], ["x", "y"], {}, "labels: expected 1, one for each text, found 2"),
        (["a", "b"], "xy", {}, "labels: expected a list, found 'xy'"),
        (["a", "b"], {"x", "y"}, {}, "labels: expected a list, found a set"),
        (FRAME, ["x", "y"], {}, r"texts: .*, found a DataFrame: use df\[COLUMNS\]\.values\.tolist"),
        (["a"], ["x"], {"name": "../evil"}, "name: expected a name of 1 to 32"),
        ("mine=f.csv:type=classification", None, {"pair": "joint"}, "options: expected inside"),
        ("sst", ["x"], {}, "labels: expected only for a list of texts"),
        ("sst", None, {"hed": "x"}, "sst: expected options of head, found 'hed'; did you"),
        ("sts2", None, {}, "tasks: expected one of"),
    ],
)
def test_a_wrong_task_is_refused_in_one_line(first, labels, options, expected, tmp_path):
    folder = {} if isinstance(first, str) else {"folder": tmp_path}
    with pytest.raises(SettingsError, match=expected):
        task(first, labels, **folder, **options)
    assert not list(tmp_path.iterdir())


def test_decimal_classes_are_the_texts_of_their_labels(tmp_path):
    labels, both = [1.0, 2.0] * 10, [f"text {i}" for i in range(20)]
    ordered = task(both, labels, classes=[1.0, 2.0], folder=tmp_path)
    assert ordered.labels == ("1", "2")


def test_a_number_of_classes_is_a_number_or_a_text():
    assert task("trec", classes=3) == task("trec", classes="3")
