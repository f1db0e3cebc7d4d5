"""Types of own tasks, inferred from their labels: several labels, numbers."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from common.errors import SettingsError, UserError
from multitask import RunConfig, task
from tasks.own_tasks import complete_task
from tasks.own_types import infer_type
from tasks.tables import DataError

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
REPLIES, ALIKE = (REQUESTS.with_name(name) for name in ("replies.csv", "alike.csv"))
MINUTES = {"first": "minutes", "train": REPLIES, "text": ["better"], "label": "minutes"}
TAGS = {"first": "tags", "train": REQUESTS, "text": ["message"], "label": "tags"}
MINUTES["type"], TAGS["type"] = "regression", "multi-label"
NAMES = ("access", "billing", "breakfast", "cleaning", "heating", "noise", "safety", "water")


def stored(own):
    """The task after a run has stored it."""
    return complete_task(json.loads(json.dumps(own.to_json())))


def rows_of(own):
    """Return the targets of all splits by id."""
    found = {}
    for split in own.source.splits:
        examples = own.read(REQUESTS.parent, split)
        found |= dict(zip(examples.ids, examples.targets.tolist(), strict=True))
    return found


def test_labels_of_a_cell_are_read_and_written():
    found = task(**TAGS)
    assert (found.labels, found.mark) == (NAMES, "|")
    assert stored(found) == found
    own, cells = found.build(), list(csv.DictReader(REQUESTS.open()))
    rows = rows_of(own)
    assert len(rows) == len(cells) == 60
    for number, cell in enumerate(cells, 1):
        labels = set(filter(None, cell["tags"].split("|")))
        assert rows[str(number)] == [float(name in labels) for name in NAMES]
        shown = own.output.show(rows[str(number)])
        assert set(filter(None, shown.split("|"))) == labels


def test_a_misspelt_label_among_others_is_refused(tmp_path):
    for one, last in (("train", "noise"), ("dev", "noise; heatin")):
        (tmp_path / f"{one}.csv").write_text(f"t,y\na,heating;noise\nb,\nc,{last}\n")
    own = task("m", train=tmp_path, text="t", label="y", separator=";").build()
    line = "dev.csv, line 4: y: expected labels of heating, noise, found 'noise; heatin'"
    with pytest.raises(DataError, match=line):
        own.read(tmp_path, "dev")


@pytest.mark.parametrize(
    ("cells", "keys", "labels", "blank"),
    [
        ("0 1 2 -1", {}, "0 1 2", "-1"),  # as in files of the hub
        ("0 1 2 -1", {"labels": "-1|0|1|2"}, "-1 0 1 2", ""),
        ("yes no -", {}, "no yes", "-"),  # as in SNLI
        ("+ - o", {}, "+ - o", ""),
        ("yes no ? #N/A", {"blank": "?|#N/A"}, "no yes", "? #N/A"),
        ("1 1.0 True 2.0", {}, "1 2", ""),  # equal numbers are one label
        ("1.5 1.50 2", {"type": "classification"}, "1.5 2", ""),
        (
            "12345678901234567890 12345678901234567891",
            {},
            "12345678901234567890 12345678901234567891",
            "",
        ),
        ("0;1 1.0;0 -1", {"separator": ";"}, "0 1", "-1"),
    ],
)
def test_labels_of_a_file_are_told_from_blanks_and_spellings(cells, keys, labels, blank, tmp_path):
    rows = [(f"text {n}", cell) for n in range(30) for cell in cells.split()]
    (tmp_path / "train.csv").write_text("\n".join(["t,y", *map(",".join, rows)]))
    (tmp_path / "dev.csv").write_text("\n".join(["t,y", *map(",".join, rows)]))
    found = task("m", train=tmp_path, text="t", label="y", **keys)
    assert (found.labels, found.blank) == (tuple(labels.split()), tuple(blank.split()))
    assert stored(found) == found
    dev = found.build().read(tmp_path, "dev")
    assert dev.blank_rows == 30 * len(blank.split())
    assert len(dev) + dev.blank_rows == len(rows)


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ("yes no unknown", "'unknown' is read as a label; blank=unknown would leave them out"),
        ("yes no n.a.", "'n.a.' is read as a label; blank=n.a. would leave them out"),
        ("yes no -1", "'-1' is read as a label; blank=-1 would leave them out"),
        ("-2 -1 0 1 2", ""),
        ("a;b a b", "'a;b' is read as one label; type=multi-label,separator=; splits it"),
        ("a,b b,c a,c", r"'a,b' is read as one label; type=multi-label,separator=\,"),
        ("a b", ""),
    ],
)
def test_labels_that_may_not_be_meant_are_named_with_the_cure(cells, line, tmp_path):
    rows = [f'text {n},"{cell}"' for n in range(9) for cell in cells.split()]
    (tmp_path / "f.csv").write_text("\n".join(["t,y", *rows]))
    _, *more = task("m", train=tmp_path / "f.csv", text="t", label="y").lines()
    assert len(more) == bool(line)
    assert line in "".join(more)


def test_lists_of_labels_become_cells(tmp_path):
    lists = [["a", "b"], [], ["b"]] * 10
    mine = task([f"text {n}" for n in range(30)], lists, folder=tmp_path)
    assert (mine.type, mine.labels) == ("multi-label", ("a", "b"))
    rows = rows_of(mine.build())
    assert [rows[str(n)] for n in (1, 2, 3)] == [[1, 1], [0, 0], [0, 1]]
    with pytest.raises(UserError, match=r"without '\|', not blank, found 'a\|b'"):
        task(["x"], [["a|b"]], folder=tmp_path)


@pytest.mark.parametrize("name", ["tags", "minutes"])
@pytest.mark.parametrize("change", [{"objective": "scl"}, {"label_smoothing": 0.1}], ids=str)
def test_several_labels_and_numbers_are_no_class(change, name):
    own = task(**{"tags": TAGS, "minutes": MINUTES}[name])
    with pytest.raises(SettingsError, match=f"needs a task with classes, found {name}"):
        RunConfig(tasks=(own,), **change)


def test_each_column_is_a_label_with_its_name(tmp_path):
    cells = ["1,no,TRUE", "0.0,yes,", ",No,false"] * 10
    rows = "".join(f"text {n},{cell}\n" for n, cell in enumerate(cells))
    (tmp_path / "f.csv").write_text(f"t,noise,heating,water\n{rows}")
    keys = {"train": tmp_path / "f.csv", "text": "t", "label": ["noise", "heating", "water"]}
    found = task("m", **keys)
    assert (found.type, found.labels) == ("multi-label", ("noise", "heating", "water"))
    assert stored(found) == found
    own = found.build()
    rows = rows_of(own)
    assert [rows[str(n)] for n in (1, 2, 3)] == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert own.output.show(rows["1"]) == "noise|water"
    (tmp_path / "f.csv").write_text("t,noise,heating,water\nx,1,0,1\nx,1,maybe,1\n")
    line = r"f.csv, line 3: heating: expected , 0, no, false, 1, yes, true, found 'maybe'"
    with pytest.raises(DataError, match=line):
        rows_of(task("m", **keys).build())


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_in_files_are_labels(ending, tmp_path):
    lists = [["a", "b c"], [], ["b c"], None] * 20
    table = {"t": [f"text {n}" for n in range(80)], "y": lists}
    file = tmp_path / f"f.{ending}"
    if ending == "parquet":
        pd.DataFrame(table).to_parquet(file)
    else:
        pd.DataFrame(table).to_json(file, orient="records", lines=True)
    keys = {"train": file, "text": "t", "label": "y"}
    found = task("m", **keys)
    assert (found.type, found.labels) == ("multi-label", ("a", "b c"))
    rows = rows_of(found.build())
    assert [rows[str(n)] for n in (1, 2, 3, 4)] == [[1, 1], [0, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(("more", "pair"), [([], "bi"), (["worse"], "bi"), (["worse"], "joint")])
def test_numbers_are_standardised_by_the_training_file(more, pair):
    found = task(**MINUTES | {"text": ["better", *more], "pair": pair})
    numbers = [float(row["minutes"]) for row in csv.DictReader(REPLIES.open())]
    mean = sum(numbers) / len(numbers)
    deviation = (sum((one - mean) ** 2 for one in numbers) / len(numbers)) ** 0.5
    assert (found.mean, found.deviation) == pytest.approx((mean, deviation))
    assert stored(found) == found
    own = found.build()
    assert sorted(rows_of(own).values()) == sorted(numbers)
    outputs = own.build_head(8).eval()(*torch.randn(own.vectors, 5, 8)).detach().double()
    assert outputs.shape == (5, 1)
    targets = torch.tensor(numbers[:5], dtype=torch.float64)
    pairs = list(zip(outputs[:, 0].tolist(), numbers[:5], strict=True))
    expected = sum((z - (y - mean) / deviation) ** 2 for z, y in pairs) / 5
    assert own.kind.loss(outputs, targets).item() == pytest.approx(expected)
    scores = own.kind.scores(outputs).numpy()
    assert scores == pytest.approx([z * deviation + mean for z, _ in pairs])
    assert list(own.kind.measure(scores, targets.numpy())) == ["pearson", "spearman", "mae"]
    assert own.output.show(np.float32(0.1)) == "0.1"


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("a,1\nb,x\n", "line 3: expected a number, found 'x'"),
        ("a,1\nb,2e30\n", r"line 3: y: expected a number from -1e\+30 to 1e\+30, found '2e30'"),
        ("a,1700000000\nb,1700000003\n", "standard deviation 1.5, largest number 1.7e\\+09"),
        ("a,1\nb,1\nc,\n", "m: the numbers hardly differ .standard deviation 0"),
    ],
)
def test_numbers_that_cannot_be_learned_are_refused(rows, line, tmp_path):
    (tmp_path / "f.csv").write_text(f"t,y\n{rows}")
    with pytest.raises(DataError, match=line):
        rows_of(task("m", train=tmp_path / "f.csv", type="regression", text="t", label="y").build())


PROSE = [f"Hello, this is letter {n}, and it is long." for n in range(30)]


@pytest.mark.parametrize(
    ("cells", "texts", "kind"),
    [
        (["red", "blue", "red", "green"] * 5, 1, "classification"),
        (["yes", "no", "yes"], 1, "classification"),
        (["0", "1", "1"], 1, "classification"),
        (["1", "2.0", "3"] * 5, 2, "classification"),
        ([str(n) for n in range(20)], 1, "classification"),
        (["1", "2", "3", "none"] * 5, 1, "classification"),
        ([str(n / 2) for n in range(9)], 1, "regression"),
        ([str(n % 30) for n in range(90)], 1, "regression"),
        ([str(n / 2) for n in range(9)], 2, "similarity"),
        (["app|late", "late", "app", "gift|app"] * 4, 1, "classification"),
        ([*["a"] * 50, *["b"] * 40, *(f"other {n}" for n in range(30))], 1, "classification"),
    ],
)
def test_types_are_inferred(cells, texts, kind):
    assert infer_type(cells, texts) == kind


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (PROSE, "free text or ids: 30 of 30 values occur only once, such as 'Hello, this is"),
        ([*"aabcde"], "4 of 6 values occur only once"),
    ],
)
def test_columns_that_are_no_labels_are_refused(cells, line):
    with pytest.raises(ValueError, match=line) as error:
        infer_type(cells, 1)
    assert len(str(error.value)) < 250
