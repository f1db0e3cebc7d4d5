"""Own tasks: descriptions as flags and YAML, lists from Python; what is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from common.errors import SettingsError, UserError
from multitask import RunConfig, task
from tasks.data import small_split_notices
from tasks.own_task import own_tasks_of
from tasks.own_tasks import parse
from tasks.readers import Examples

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
    found = task(f"mine={file}:{PAIR}")
    keys = {"text": ["english", "german"], "label": ["same?"], "labels": ["ja", "nein"]}
    assert found.to_json() == {"name": "mine", "type": "classification", "train": str(file), **keys}
    stored = json.loads(json.dumps([found.to_json()]))
    assert own_tasks_of(stored) == {"mine": found}
    assert task(f"mine={file}:{PAIR.partition(',')[2]}") == found
    assert task(f"mine={file}", text=["english", "german"], label="same?") == found


def test_yaml_describes_the_same_of_files_beside_it_and_all_its_values_are_texts(file):
    text = "train: pairs.csv\ntype: classification\ntext: [english, german]\nlabel: same?\n"
    (file.parent / "task.yaml").write_text(text + "dev:\n")
    assert task(f"mine={file.parent}/task.yaml") == task(f"mine={file}:{PAIR}")
    (file.parent / "task.yaml").write_text(
        "train: 2e3.csv\ntext: true\nlabel: 1e5\nlabels: [yes, 1e5, true]\nquotes: no\nlow: 1\n"
    )
    found = parse(f"m={file.parent}/task.yaml")
    assert (found.text, found.label, Path(found.train).name) == (("true",), ("1e5",), "2e3.csv")
    assert (found.labels, found.quotes, found.low) == (("yes", "1e5", "true"), False, 1.0)
    (file.parent / "task.yaml").write_text(f"{text}text: german\n")
    with pytest.raises(SettingsError, match="expected each key once, found text twice"):
        parse(f"m={file.parent}/task.yaml")


def test_few_dev_examples_and_classes_without_training_examples_are_noticed(tmp_path):
    found = task([f"text {i}" for i in range(21)], [*"ab" * 10, "c"], folder=tmp_path).build()
    parts = {"train": [0, 0, 1, 1], "dev": [0, 0, 0, 0]}
    splits = {name: Examples([], (), np.array(targets)) for name, targets in parts.items()}
    assert list(small_split_notices(found, splits)) == [
        "scores on 4 dev examples are rough: one of them is 25.0 points",
        "classes without a training example: c",
    ]
    similar = task([("a", "b")] * 9, [0.5, 1.0, 2.0] * 3, folder=tmp_path).build()
    assert list(small_split_notices(similar, splits)) == ["scores on 4 dev examples are rough"]
    enough = {name: Examples([], (), np.arange(300) % 3) for name in parts}
    assert not list(small_split_notices(found, enough))


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("dev", [True, False])
def test_files_of_dev_and_test_are_used_as_they_are(file, labelled, dev):
    rest = f"test={file.parent}/test.csv" + f",dev={file.parent}/dev.csv" * dev
    (file.parent / "dev.csv").write_text("same?,english,german\nja,x,y\n")
    header, row = ("same?,english,german", "nein,x,y") if labelled else ("english,german", "x,y")
    (file.parent / "test.csv").write_text(f"{header}\n{row}\n")
    own = task(f"mine={file}:{PAIR},{rest}").build()
    found = {split: own.read(file.parent, split) for split in own.source.splits}
    if dev:
        assert len(found["train"]) == 30
        assert found["dev"].texts == (["x"], ["y"])
    else:
        assert len(found["train"]) + len(found["dev"]) == 30
    assert found["test"].targets == [1] if labelled else found["test"].targets is None


def test_similarities_keep_the_scale_of_their_file(tmp_path):
    (tmp_path / "s.tsv").write_text("a\tb\ty\nq\tr\t-1\ns\tt\t3.5\nu\tv\t\nw\tx\t2\n")
    text = f"mine={tmp_path}/s.tsv:type=similarity,text=a,text=b,label=y"
    found = task(text)
    assert (found.low, found.high) == (-1, 3.5)
    own = found.build()
    assert own.output.show(0.0) == "-1.0"
    assert own.output.parse("3.5") == 4.5
    assert own.build_head(8).scale == 4.5
    wider = task(f"{text},low=-2")
    assert (wider.low, wider.high) == (-2, 3.5)


ONE = "m=a.csv:type=classification,text=a,label=b"
TWO = "m=a.csv:type=similarity,text=a,text=b,label=c"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"m=a:b.csv:text=yes\, no,label=b\,", "a:b.csv: expected the file train of m, found none"),
        ("Mine=a.csv:text=a,label=b", "name has 1 to 32 lower-case letters, .* found 'Mine'"),
        ("sst=a.csv:text=a,label=b", "found 'sst', which is reserved; NAME="),
        ("m=a.csv:type=similarity,text=a,label=b", "m: text: similarity needs 2 columns, found 1"),
        ("m=a.csv:type=classification,label=b", "m: needs text"),
        (f"{ONE},lables=c|d", "m: no key 'lables'; there are type, .*; did you mean labels?"),
        (f"{ONE},type=regression", "m: type: .*classification.*found "),
        (f"{TWO},low=1,high=1", "m: low: expected less than high, 1, found 1"),
        (f"{ONE},pair=joint", "m: pair: joint needs two text columns"),
        (f"{ONE},group=g,dev=d.csv", "m: group: it splits a single file"),
        (f"{ONE},labels=a", "m: labels: expected two or more, .* found 1, such as 'a'"),
        (f"{ONE},labels=a|b|a", "m: labels: expected each once, found 'a' twice"),
        (rf"{ONE},labels=a|b \, c", "m: labels: expected none with ' , ', .* found 'b , c'"),
        ("m=a.csv:type=classification,text", "expected key=value, found 'text'"),
        ("m=nowhere.yaml", "expected a task in YAML, found no file"),
        (ONE.replace("label=b", "label=a"), "m: column 'a' is there twice"),
        (f"{ONE},label=c", "m: label: classification has one column, found 2"),
        ("m={file}:text=english,label=lang", "line 1: expected a column 'lang'"),
        ("m={file}:text=german,label=same?,dev=nope.csv", "nope.csv: expected the file dev of m"),
        ("m={file}:text=german,label=same?,labels=nein|Ja", "line 2: same\\?: expected nein, Ja"),
        ("m={folder}:text=german,label=same?", r"expected a file train\.csv"),
    ],
)
def test_what_describes_no_task_is_refused_in_one_line(text, expected, file):
    text = text.replace("{file}", str(file)).replace("{folder}", str(file.parent))
    with pytest.raises(UserError, match=expected) as error:
        task(text).build().read(file.parent, "train")
    assert "\n" not in str(error.value)


def test_labels_may_be_signs_or_numbers_in_their_order_and_ids_may_differ_in_case(tmp_path):
    columns, signs = "type=classification,text=t,label=y", ("+", "👩\u200d👧")
    rows = "".join(f"{'Aa'[i % 2]}{i // 2},t {i},{signs[i % 2]}\n" for i in range(20))
    (tmp_path / "f.csv").write_text("key,t,y\n" + rows)
    found = task(f"m={tmp_path}/f.csv:{columns},id=key")
    assert found.labels == signs
    examples = found.build().read(tmp_path, "train")
    assert {one[0] for one in examples.ids} == {"A", "a"}
    lines = [json.dumps({"t": "x", "y": y}) for y in (10, 9, 1, 10)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    assert task(f"m={tmp_path}/c.jsonl:{columns}").labels == ("1", "9", "10")


def test_a_configuration_completes_a_task_by_its_file(file):
    keys = {"train": file, "text": ["english", "german"], "label": "same?"}
    found = RunConfig(tasks={"m": keys}, encoder="tiny")
    assert found.tasks["m"] == task(f"m={file}:{PAIR}")
    assert RunConfig(**json.loads(json.dumps(found.to_json()))) == found


def test_a_folder_has_its_files_by_split(file):
    folder = file.parent / "folder"
    folder.mkdir()
    file.rename(folder / "train.csv")
    (folder / "validation.csv").write_text("same?,english,german\nja,x,y\nnein,x,z\n")
    found = task(f"m={folder}:{PAIR}")
    files = str(folder / "train.csv"), str(folder / "validation.csv"), None
    assert (found.train, found.dev, found.test) == files
    np.testing.assert_array_equal(found.build().read(folder, "dev").targets, [0, 1])


# Lists from Python


@pytest.mark.parametrize(
    ("labels", "of_texts", "of_pairs"),
    [
        (["yes", math.nan, "no"], "classification", "classification"),
        ([0, 1, None], "classification", "classification"),
        (pd.Series([0, 1, None]), "classification", "classification"),  # stored as floats
        ([0.5, 1, 2], "regression", "similarity"),
        (np.array([0.5, math.nan, 1.0]), "regression", "similarity"),
        ([["a"], None, ["b", "a"]], "multi-label", "multi-label"),
    ],
    ids=str,
)
@pytest.mark.parametrize("pairs", [False, True])
def test_the_type_of_lists_follows_from_their_labels(labels, of_texts, of_pairs, pairs, tmp_path):
    rows = [f"text {i}" for i in range(21)]
    rows, kind = ([*zip(rows, rows, strict=True)], of_pairs) if pairs else (rows, of_texts)
    labels = list(labels) * 7
    blank = {"blank": "unknown"} if kind == "multi-label" else {}
    mine = task(rows, labels, folder=tmp_path, **blank)
    assert (mine.type, len(mine.text)) == (kind, 1 + pairs)
    assert task(np.array(rows), labels, folder=tmp_path, **blank) == mine
    assert len(list(tmp_path.iterdir())) == 1
    own = mine.build()
    splits = [own.read(tmp_path, split) for split in own.source.splits]
    missing = sum(not isinstance(label, list) and pd.isna(label) for label in labels)
    assert sum(one.blank_rows for one in splits) == missing
    assert sum(map(len, splits)) == 21 - missing


AB = ["a", "b"]
MATRIX = "^labels: expected lists of the labels that a text has, .* a matrix .*NAMES"


@pytest.mark.parametrize(
    ("first", "labels", "options", "expected"),
    [
        (["a", None], ["x", "y"], {}, "texts: expected texts or pairs of texts, found "),
        (["a"], ["x", "y"], {}, "labels: expected one for each of 1, found 2"),
        (AB, {"x", "y"}, {}, "labels: expected a list, found a set"),
        (FRAME, ["x", "y"], {}, r"texts: .*, found a DataFrame: use df\[COLUMNS\]\.values\.tolist"),
        (AB, [1, 2], {"classes": [1, 1, 2]}, "labels: expected each once, found '1' twice"),
        (AB, np.eye(2), {}, MATRIX),
        ("sst", ["x"], {}, "labels: only a list of texts has them"),
        ("sst", None, {"hed": "x"}, "task sst: no setting 'hed'; it has head"),
        ("sts2", None, {}, "task: no method 'sts2'"),
    ],
)
def test_a_wrong_task_is_refused_in_one_line(first, labels, options, expected, tmp_path):
    folder = {} if isinstance(first, str) else {"folder": tmp_path}
    with pytest.raises(UserError, match=expected):
        task(first, labels, **folder, **options)
    assert not list(tmp_path.iterdir())
