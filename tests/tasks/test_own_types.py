"""Types of own tasks: classes, several labels, numbers."""

import csv
import importlib
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from common.errors import SettingsError, UserError
from multitask import RunConfig, task
from multitask.config_tasks import plain_tasks
from tasks import find_task
from tasks.described import DescriptionError
from tasks.task_description import from_json
from tasks.task_inference import description_lines
from tasks.text_files import DataError
from tests.tasks.sources import described

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
REPLIES, ALIKE = (REQUESTS.with_name(name) for name in ("replies.csv", "alike.csv"))
MINUTES = f"minutes={REPLIES}:type=regression,text=better,label=minutes"
URGENCY = f"urgency={REQUESTS}:type=classification,text=message,label=urgency"


def built(found):
    return find_task(found.name, {found.name: found.to_json()})


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        ([1, 2, 3], (1, 2, 3), ("1", "2", "3")),
        ([1, 2, 3], range(1, 4), ("1", "2", "3")),
        ([1, 2, 3], np.array([3, 2, 1]), ("3", "2", "1")),
        ([1, 2, 3], pd.Index([1, 2, 3]), ("1", "2", "3")),
        (["low", "high", "low"], pd.Series(["low", "high"]), ("low", "high")),
        ([True, False, True], [False, True], ("0", "1")),
        (np.array([True, False, True]), np.array([True, False]), ("1", "0")),
    ],
    ids=str,
)
def test_classes_are_in_any_container_with_an_order(labels, classes, expected, tmp_path):
    texts, labels = [f"text {n}" for n in range(30)], list(labels) * 10
    mine = task(texts, labels, name="m", folder=tmp_path, classes=classes)
    assert mine.labels == expected
    assert len(rows_of(built(mine))) == 30


@pytest.mark.parametrize(
    ("classes", "options", "line"),
    [
        ({1, 2}, {}, "classes: expected a list, found a set"),
        ([1, 1, 2], {}, "classes: expected unique labels, found '1' twice"),
        ([1, None, 2], {}, "classes: expected labels .*, not blank, found ''"),
        ([1, 2], {"type": "regression"}, "classes: expected another type, found regression"),
        (["a|", "b"], {"type": "multi-label"}, "classes: expected labels without '|', found 'a|'"),
    ],
    ids=str,
)
def test_wrong_classes_are_refused_by_the_name_of_the_argument(classes, options, line, tmp_path):
    with pytest.raises(UserError, match=f"^(m: )?{line}"):
        task(["a", "b"], [1, 2], name="m", folder=tmp_path, classes=classes, **options)


# Several labels

TAGS = f"tags={REQUESTS}:type=multi-label,text=message,label=tags"
NAMES = ("access", "billing", "breakfast", "cleaning", "heating", "noise", "safety", "water")


def rows_of(own):
    """Return the targets of all splits by id."""
    found = {}
    for split in own.source.splits:
        examples = own.read(REQUESTS.parent, split)
        found |= dict(zip(examples.ids, examples.targets.tolist(), strict=True))
    return found


def test_labels_of_a_cell_are_read_written_and_read_back():
    found = described(TAGS)
    assert (found.labels, found.separator, found.blank) == (NAMES, "|", "none")
    assert from_json("tags", json.loads(json.dumps(found.to_json()))) == found
    own, cells = built(found), list(csv.DictReader(REQUESTS.open()))
    rows = rows_of(own)
    assert len(rows) == len(cells) == 60
    for number, cell in enumerate(cells, 1):
        labels = set(filter(None, cell["tags"].split("|")))
        assert rows[str(number)] == [float(name in labels) for name in NAMES]
        shown = own.output.show(rows[str(number)])
        assert set(filter(None, shown.split("|"))) == labels
        assert own.output.parse(shown) == tuple(rows[str(number)])


def test_unknown_labels_are_skipped_and_counted():
    own = built(described(f"{TAGS},blank=unknown"))
    splits = [own.read(REQUESTS.parent, split) for split in own.source.splits]
    assert sum(one.blank_rows for one in splits) == 6
    assert sum(map(len, splits)) == 54


@pytest.mark.parametrize("rest", ["", ",text=topic", ",text=topic,pair=joint"])
def test_several_labels_have_a_sigmoid_each(rest):
    own = built(described(TAGS + rest))
    logits = own.build_head(8).eval()(*torch.randn(own.vectors, 5, 8)).detach().double()
    targets = (torch.rand(5, 8) > 0.5).double()
    signs = 2 * targets - 1
    assert own.kind.loss(logits, targets).item() == pytest.approx(
        -F.logsigmoid(signs * logits).mean().item()
    )
    assert next(iter(own.kind.measure(logits.sigmoid().numpy(), targets.numpy()))) == "micro_f1"


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_misspelt_label_among_others_gets_a_suggestion(split, tmp_path):
    for one in ("train", "dev", "test"):
        last = "noise; heatin" if one == split else "noise"
        (tmp_path / f"{one}.csv").write_text(f"t,y\na,heating;noise\nb,\nc,{last}\n")
    own = built(described(f"m={tmp_path}:type=multi-label,text=t,label=y,separator=;"))
    line = f"{split}.csv, line 4: y: expected heating, noise, found 'heatin'; did you mean heating"
    with pytest.raises(DataError, match=line):
        own.read(tmp_path, split)


def test_another_separator_in_the_labels_is_noticed(tmp_path):
    for mark, written in ((";", ";"), (",", "\\,")):
        (tmp_path / "f.csv").write_text(f't,y\na,"x{mark}y"\nb,y\n')
        found = described(f"m={tmp_path}/f.csv:type=multi-label,text=t,label=y")
        assert [*description_lines(found)][1:] == [
            f"labels contain {mark!r}, such as 'x{mark}y'; separator={written} splits"
        ]
        split = described(f"m={tmp_path}/f.csv:type=multi-label,text=t,label=y,separator={written}")
        assert split.labels == ("x", "y")


def test_lists_of_labels_become_cells(tmp_path):
    lists = [["a", "b"], [], ["b"]] * 10
    mine = task([f"text {n}" for n in range(30)], lists, name="m", folder=tmp_path)
    assert (mine.type, mine.labels) == ("multi-label", ("a", "b"))
    rows = rows_of(built(mine))
    assert [rows[str(n)] for n in (1, 2, 3)] == [[1, 1], [0, 0], [0, 1]]
    for labels, line in (([["a|b"]], "without '|', found 'a|b'"), ([[None]], "lists of texts")):
        with pytest.raises(SettingsError, match=re.escape(line)):
            task(["x"], labels, folder=tmp_path)
    with pytest.raises(SettingsError, match="labels: expected texts or numbers, found"):
        task(["x"], [["a"]], folder=tmp_path, type="classification")


@pytest.mark.parametrize(
    "labels",
    [
        np.eye(3),
        [(0, 1), (1, 1), None],
        [[1, 0], [math.nan, 1], [0, 0]],
    ],
    ids=str,
)
def test_a_matrix_is_no_list_of_labels(labels, tmp_path):
    line = "^labels: expected lists of the labels that a text has, .* found a matrix .*NAMES.*$"
    with pytest.raises(SettingsError, match=line):
        task(["a", "b", "c"], labels, folder=tmp_path)


@pytest.mark.parametrize("name", ["tags", "minutes"])
@pytest.mark.parametrize("change", [{"objective": "scl"}, {"label_smoothing": 0.1}], ids=str)
def test_several_labels_and_numbers_are_no_class(change, name):
    own = task({"tags": TAGS, "minutes": MINUTES}[name])
    with pytest.raises(SettingsError, match=f"needs a task with classes, found {name}"):
        RunConfig(tasks=(own,), **change)


# Several labels in a column each, and lists of labels

TRAITS = f"traits={REPLIES}:type=multi-label,text=better,label=apology,label=offer,label=short"


def test_each_column_is_a_label_with_its_name(tmp_path):
    cells = ["1,no,TRUE", "0.0,yes,", ",No,false"] * 10
    rows = "".join(f"text {n},{cell}\n" for n, cell in enumerate(cells))
    (tmp_path / "f.csv").write_text(f"t,noise,heating,water\n{rows}")
    text = f"m={tmp_path}/f.csv:type=multi-label,text=t,label=noise,label=heating,label=water"
    found = described(text)
    assert (found.label, found.labels) == (None, ("noise", "heating", "water"))
    assert from_json("m", json.loads(json.dumps(found.to_json()))) == found
    own = built(found)
    rows = rows_of(own)
    assert [rows[str(n)] for n in (1, 2, 3)] == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert own.output.show(rows["1"]) == "noise|water"
    keys = "type: multi-label\ntext: t\nlabel: [noise, heating, water]\n"
    (tmp_path / "f.yaml").write_text(f"train: f.csv\n{keys}")
    assert described(f"m={tmp_path}/f.yaml") == found
    known = rows_of(built(described(f"{text},blank=unknown")))
    assert known == {number: row for number, row in rows.items() if int(number) % 3 == 1}
    (tmp_path / "f.csv").write_text("t,noise,heating,water\nx,1,0,1\nx,1,maybe,1\n")
    line = r"f.csv, line 3: heating: expected 0 or 1, no or yes, false or true, found 'maybe'"
    with pytest.raises(DataError, match=line):
        rows_of(built(described(text)))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{TRAITS},labels=a|b", "labels: expected none beside several label columns"),
        (f"{URGENCY},label=topic", "label: expected one value, found two"),
    ],
)
def test_label_columns_of_another_type_are_refused(text, line):
    with pytest.raises(DescriptionError, match=re.escape(line)):
        described(text)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_in_files_are_labels(ending, tmp_path):
    lists = [["a", "b c"], [], ["b c"], None] * 20
    table = {"t": [f"text {n}" for n in range(80)], "y": lists}
    file = tmp_path / f"f.{ending}"
    if ending == "parquet":
        arrow = pytest.importorskip("pyarrow")
        importlib.import_module("pyarrow.parquet").write_table(arrow.table(table), file)
    else:
        rows = zip(*table.values(), strict=True)
        file.write_text(
            "".join(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows)
        )
    text = f"m={file}:type=multi-label,text=t,label=y"
    found = described(text)
    assert found.labels == ("a", "b c")
    rows = rows_of(built(found))
    assert [rows[str(n)] for n in (1, 2, 3, 4)] == [[1, 1], [0, 0], [0, 1], [0, 0]]
    assert len(rows_of(built(described(f"{text},blank=unknown")))) == 40
    with pytest.raises(DataError, match="expected labels without ' ', not blank, found 'b c'"):
        described(f"{text},separator= ")
    with pytest.raises(DataError, match=r"line 1.*'y'|row 1: expected text or a number"):
        described(f"m={file}:type=classification,text=t,label=y")


def test_lists_of_class_numbers_have_the_names_stored_in_the_file(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    feature = {"_type": "ClassLabel", "names": ["anger", "joy"]}
    features = {"y": {"_type": "Sequence", "feature": feature}}
    stored = json.dumps({"info": {"features": features}})
    table = arrow.table({"t": ["a", "b", "c"], "y": [[1], [0, 1], []]})
    table = table.replace_schema_metadata({"huggingface": stored})
    importlib.import_module("pyarrow.parquet").write_table(table, tmp_path / "f.parquet")
    found = described(f"m={tmp_path}/f.parquet:type=multi-label,text=t,label=y")
    assert found.labels == ("anger", "joy")


# Numbers


@pytest.mark.parametrize("rest", ["", ",text=worse", ",text=worse,pair=joint"])
def test_numbers_are_standardised_by_the_training_file(rest):
    found = described(f"{MINUTES}{rest}")
    numbers = [float(row["minutes"]) for row in csv.DictReader(REPLIES.open())]
    mean = sum(numbers) / len(numbers)
    deviation = (sum((one - mean) ** 2 for one in numbers) / len(numbers)) ** 0.5
    assert (found.mean, found.deviation) == pytest.approx((mean, deviation))
    assert from_json("minutes", json.loads(json.dumps(found.to_json()))) == found
    own = built(found)
    assert sorted(rows_of(own).values()) == sorted(numbers)
    outputs = own.build_head(8).eval()(*torch.randn(own.vectors, 5, 8)).detach().double()
    assert outputs.shape == (5,)
    targets = torch.tensor(numbers[:5], dtype=torch.float64)
    pairs = list(zip(outputs.tolist(), numbers[:5], strict=True))
    expected = sum((z - (y - mean) / deviation) ** 2 for z, y in pairs) / 5
    assert own.kind.loss(outputs, targets).item() == pytest.approx(expected)
    scores = own.kind.scores(outputs).numpy()
    assert scores == pytest.approx([z * deviation + mean for z, _ in pairs])
    metrics = own.kind.measure(scores, targets.numpy())
    assert list(metrics) == ["pearson", "spearman", "mae"]
    errors = [abs(s - y) for s, y in zip(scores.tolist(), numbers[:5], strict=True)]
    assert metrics["mae"] == pytest.approx(sum(errors) / 5)
    assert own.output.parse(own.output.show(np.float32(0.1))) == pytest.approx(0.1)


def test_the_scale_of_similarities_changes_no_other_loss():
    """Numbers are standardised; a similarity counts 25 times as much at the default scale."""
    alike = f"alike={ALIKE}:type=similarity,text=One guest says,text=Another guest says"
    tasks = (task(f"{alike},label=How alike (0-10)"), task(MINUTES))
    built_tasks = plain_tasks(RunConfig(tasks=tasks))
    for name, factor in (("alike", 25.0), ("minutes", 1.0)):
        plain = built(next(one for one in tasks if one.name == name)).kind
        values = torch.tensor([0.2, 0.7])
        for function in ("loss", "divergence"):
            one, two = (
                getattr(kind, function)(values, 1 - values)
                for kind in (plain, built_tasks[name].kind)
            )
            assert two.item() == pytest.approx(factor * one.item())


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("a,1\nb,x\n", "line 3: expected a number, found 'x'"),
        ("a,1\nb,2e30\n", r"line 3: expected a number from -1e\+30 to 1e\+30, found '2e30'"),
        ("a,1\nb,1\nc,\n", "expected two different numbers, found none or one"),
        ("a,1e-200\nb,2e-200\n", "found 0 of 2e-200; .* or use a smaller unit"),
        ("a,1000000000\nb,1000000001\n", r"found 0\.5 of 1e\+09; subtract a constant"),
    ],
)
def test_numbers_that_cannot_be_learned_are_refused(rows, line, tmp_path):
    (tmp_path / "f.csv").write_text(f"t,y\n{rows}")
    with pytest.raises(DataError, match=line):
        described(f"m={tmp_path}/f.csv:type=regression,text=t,label=y")
