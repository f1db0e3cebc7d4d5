"""Own tasks: their keys, lists from Python; what is refused."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from common.errors import UserError
from multitask import RunConfig, task
from tasks.own_tasks import complete_task

ROWS = [("a cat", "ein Kater", "ja"), ("a dog", "der Mond", "nein"), ("the sun", "die Sonne", "ja")]
PAIR = {"type": "classification", "text": ["english", "german"], "label": "same?"}
FRAME = pd.DataFrame({"a": ["x", "y"], "b": ["z", "w"]})


@pytest.fixture
def file(tmp_path):
    """A CSV file of 30 pairs with odd names of columns."""
    lines = [f"{a},{b} {i},{c}" for i in range(10) for a, b, c in ROWS]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["english,german,same?", *lines]) + "\n")
    return path


def test_a_task_is_stored_with_what_its_file_says(file):
    found = task("mine", train=file, **PAIR)
    keys = {**PAIR, "label": ["same?"], "labels": ["ja", "nein"], "test_labels": False}
    assert found.to_json() == {"name": "mine", "train": str(file), **keys}
    assert complete_task(json.loads(json.dumps(found.to_json()))) == found
    assert task("mine", train=file, text=["english", "german"], label="same?") == found


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("dev", [True, False])
def test_files_of_dev_and_test_are_used_as_they_are(file, labelled, dev):
    files = {"test": file.parent / "test.csv"} | ({"dev": file.parent / "dev.csv"} if dev else {})
    (file.parent / "dev.csv").write_text("same?,english,german\nja,x,y\n")
    header, row = ("same?,english,german", "nein,x,y") if labelled else ("english,german", "x,y")
    (file.parent / "test.csv").write_text(f"{header}\n{row}\n")
    own = task("mine", train=file, **files, **PAIR).build()
    found = {split: own.read(file.parent, split) for split in own.source.splits}
    if dev:
        assert len(found["train"]) == 30
        assert found["dev"].texts == (["x"], ["y"])
    else:
        assert len(found["train"]) + len(found["dev"]) == 30
    assert found["test"].targets == [1] if labelled else found["test"].targets is None


@pytest.mark.parametrize(
    ("cells", "targets"),
    [
        (",-1,-1.0", None),
        (",nein,-", [-1, 1, -1]),
        ("ja,nein,ja", [0, 1, 0]),
        ("-1,ja,", [-1, 0, -1]),
    ],
)
def test_every_row_of_a_test_file_is_predicted_and_the_labelled_ones_are_scored(
    cells, targets, file
):
    rows = [f"{cell},x{n},y" for n, cell in enumerate(cells.split(","))]
    (file.parent / "test.csv").write_text("\n".join(["same?,english,german", *rows]))
    own = task(
        "mine", train=file, test=file.parent / "test.csv", labels="ja|nein", blank="-1", **PAIR
    )
    found, kind = own.build().read(file.parent, "test"), own.build().kind
    assert found.ids == ["1", "2", "3"]
    assert (found.targets is None) if targets is None else found.targets.tolist() == targets
    if targets is not None:
        known = [one for one in targets if one >= 0]
        scores = np.eye(2)[[max(0, one) for one in targets]]
        assert kind.measure(scores, found.targets)["accuracy"] == 1.0
        scores = np.eye(2)[[1 - one if one >= 0 else 0 for one in targets]]
        assert kind.measure(scores, found.targets)["accuracy"] == 0.0, known


def test_numbers_of_a_test_file_may_be_blank(tmp_path):
    for split, cells in (("train", "0 2.5 5 1"), ("dev", "1 4"), ("test", "-1 2.5 -1.0 5")):
        rows = [f"a {n},b {n},{cell}" for n, cell in enumerate(cells.split())]
        (tmp_path / f"{split}.csv").write_text("\n".join(["a,b,y", *rows]))
    own = task("m", train=tmp_path, text=["a", "b"], label="y", type="similarity").build()
    found = own.read(tmp_path, "test")
    assert found.targets.tolist() == [math.inf, 2.5, math.inf, 5]
    scores = np.array([9, 1, 0, 2], np.float32)
    assert own.kind.measure(scores, found.targets) == pytest.approx({"pearson": 1, "spearman": 1})


def test_similarities_keep_the_scale_of_their_file(tmp_path):
    (tmp_path / "s.tsv").write_text("a\tb\ty\nq\tr\t-1\ns\tt\t3.5\nu\tv\t\nw\tx\t2\n")
    keys = {"train": tmp_path / "s.tsv", "type": "similarity", "text": ["a", "b"], "label": "y"}
    found = task("mine", **keys)
    assert (found.low, found.high) == (-1, 4)  # the whole numbers around all values
    assert "-1 is read as a number; if it means no label, add blank=-1" in [*found.lines()]
    own = found.build()
    assert own.output.show(0.0) == "-1.0"
    assert own.build_head(8).scale == 5
    wider = task("mine", low=-2, **keys)
    assert (wider.low, wider.high) == (-2, 4)


ONE = {"train": "a.csv", "type": "classification", "text": "a", "label": "b"}
HERE = {"train": "pairs.csv", "text": "german", "label": "same?"}


@pytest.mark.parametrize(
    ("name", "keys", "expected"),
    [
        ("m", {"train": "a:b.csv"}, "a:b.csv: cannot be read: No such file"),
        ("Mine", {}, "'Mine': a name has 1 to 32 lower-case letters, "),
        ("sst", {}, "'sst': this name is reserved; choose another name"),
        ("m", {"type": "similarity"}, "m: text: similarity needs 2 columns, found 1"),
        ("m", {"encoding": "rot13"}, "m: encoding: expected a name such as cp1252 or utf-16"),
        ("m", {"delimiter": "ab"}, r"m: delimiter: Expected str, one character or \|\|\|, found"),
        ("m", {"lables": "c|d"}, "m: no key 'lables'; choose from .*; did you mean labels?"),
        ("m", {"type": "class"}, "m: type: .*classification.*found "),
        ("m", {"type": None, "low": 1, "high": 1}, "m: low: must be less than high .1., f"),
        ("m", {"type": "regression", "labels": "a|b"}, "m: labels: type regression has no classes"),
        ("m", {"labels": "a|b|a"}, "m: labels: name two or more, each once, found a, b, a"),
        ("m", {"label": "a"}, "m: column 'a' is named twice"),
        ("m", {"label": ["b", "c"]}, "m: label: type classification takes one column, found 2"),
        ("m", {**HERE, "label": "lang"}, "line 1: expected a column 'lang'"),
        ("m", {**HERE, "labels": "nein|jo"}, "line 2: same\\?: expected nein, jo"),
        ("m", {**HERE, "train": "."}, r"no training file, such as train\.csv"),
    ],
)
def test_what_describes_no_task_is_refused_in_one_line(name, keys, expected, file, monkeypatch):
    monkeypatch.chdir(file.parent)
    with pytest.raises(UserError, match=expected) as error:
        RunConfig(tasks={name: ONE | keys}).tasks[name].build().read(file.parent, "train")
    assert "\n" not in str(error.value)


def test_labels_may_be_signs_or_numbers_in_their_order_and_ids_may_differ_in_case(tmp_path):
    keys, signs = {"type": "classification", "text": "t", "label": "y"}, ("+", "👩\u200d👧")
    rows = "".join(f"{'Aa'[i % 2]}{i // 2},t {i},{signs[i % 2]}\n" for i in range(20))
    (tmp_path / "f.csv").write_text("key,t,y\n" + rows)
    found = task("m", train=tmp_path / "f.csv", id="key", **keys)
    assert found.labels == signs
    examples = found.build().read(tmp_path, "train")
    assert {one[0] for one in examples.ids} == {"A", "a"}
    lines = [json.dumps({"t": "x", "y": y}) for y in (10, 9, 1, 10)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    assert task("m", train=tmp_path / "c.jsonl", **keys).labels == ("1", "9", "10")


def test_a_folder_has_its_files_by_split(file):
    folder = file.parent / "folder"
    folder.mkdir()
    file.rename(folder / "train.csv")
    (folder / "validation.csv").write_text("same?,english,german\nja,x,y\nnein,x,z\n")
    found = task("m", train=folder, **PAIR)
    files = str(folder / "train.csv"), str(folder / "validation.csv"), None
    assert (found.train, found.dev, found.test) == files
    np.testing.assert_array_equal(found.build().read(folder, "dev").targets, [0, 1])


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
    mine = task(rows, labels, folder=tmp_path)
    assert (mine.type, len(mine.text)) == (kind, 1 + pairs)
    assert task(np.array(rows), labels, folder=tmp_path) == mine
    assert len(list(tmp_path.iterdir())) == 1
    own = mine.build()
    splits = [own.read(tmp_path, split) for split in own.source.splits]
    missing = sum(not isinstance(label, list) and pd.isna(label) for label in labels)
    missing *= kind != "multi-label"  # a blank cell has no label
    assert sum(one.blank_rows for one in splits) == missing
    assert sum(map(len, splits)) == 21 - missing


AB = ["a", "b"]
MATRIX = "^labels: give lists of labels, not a matrix: .*NAMES"


@pytest.mark.parametrize(
    ("first", "labels", "options", "expected"),
    [
        (["a", None], ["x", "y"], {}, "texts: expected a list, found a NoneType"),
        (["a"], ["x", "y"], {}, "labels: expected 1, one for each text, found 2"),
        (AB, {"x", "y"}, {}, "labels: expected a list, found a set"),
        (FRAME, ["x", "y"], {}, r"texts: .*, found a DataFrame.* df\[COLUMNS\]\.values\.tolist"),
        (AB, [1, 2], {"classes": [1, 1, 2]}, "labels: .* each once, found 1, 1, 2"),
        (AB, np.eye(2), {}, MATRIX),
        ("sst", None, {"hed": "x"}, "task sst: no setting 'hed'; it has head"),
        ("sts2", None, {}, "tasks: no task 'sts2'; choose from sst, "),
    ],
)
def test_a_wrong_task_is_refused_in_one_line(first, labels, options, expected, tmp_path):
    folder = {} if isinstance(first, str) else {"folder": tmp_path}
    with pytest.raises(UserError, match=expected):
        task(first, labels, **folder, **options)
    assert not list(tmp_path.iterdir())
