"""Types of own tasks: ordered classes, several labels."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from common.errors import SettingsError, UserError
from multitask import RunConfig, task
from tasks import find_task
from tasks.described import DescriptionError, from_json, parse_description
from tasks.own_types import TYPES
from tasks.task_inference import complete_description, description_lines
from tasks.text_files import DataError

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
URGENCY = f"urgency={REQUESTS}:type=ordinal,text=message,label=urgency"


def described(text):
    name = text.partition("=")[0]
    return complete_description(name, parse_description(text))


def built(found):
    return find_task(found.name, {found.name: found.to_json()})


def test_ordered_words_need_their_order():
    with pytest.raises(
        DescriptionError, match=r"labels=low\|normal\|high.*found high, low, normal$"
    ):
        described(URGENCY)
    found = described(f"{URGENCY},labels=low|normal|high")
    assert [*description_lines(found)] == [
        "ordinal classification of 'message', 3 ordered classes in column 'urgency': "
        "low < normal < high"
    ]
    examples = built(found).read(REQUESTS.parent, "train")
    assert examples.texts[0][0] == "There is smoke in the corridor on our floor."
    assert examples.targets[0] == 2


def test_ordered_numbers_are_sorted_as_numbers(tmp_path):
    mine = task([f"text {n}" for n in range(30)], [10, 9, 1] * 10, folder=tmp_path, type="ordinal")
    assert mine.described.labels == ("1", "9", "10")
    words = {"type": "ordinal", "classes": ["low", "high"]}
    mine = task([f"text {n}" for n in range(30)], ["high", "low"] * 15, folder=tmp_path, **words)
    assert mine.described.labels == ("low", "high")


@pytest.mark.parametrize("rest", ["", ",text=topic", ",text=topic,pair=joint"])
def test_ordered_classes_are_trained_by_corn(rest):
    """The head has C - 1 logits of P(y > k | y >= k); the loss is a loop over them in float64."""
    own = built(described(f"{URGENCY},labels=low|normal|high{rest}"))
    torch.manual_seed(0)
    head = own.build_head(8).eval()
    logits = head(*torch.randn(own.vectors, 6, 8)).detach().double()
    assert logits.shape == (6, 2)
    targets = torch.tensor([0, 1, 2, 2, 1, 0])
    terms = [
        -F.logsigmoid(logits[i, k] if target > k else -logits[i, k])
        for i, target in enumerate(targets.tolist())
        for k in range(2)
        if target >= k
    ]
    assert own.kind.loss(logits, targets).item() == pytest.approx(sum(terms).item() / 6)
    above = logits.sigmoid().cumprod(1).numpy()
    expected = np.stack([1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]], 1)
    np.testing.assert_allclose(own.kind.scores(logits).numpy(), expected, rtol=1e-9)
    found = own.kind.measure(expected, targets.numpy())
    assert list(found) == ["quadratic_kappa", "accuracy"]
    assert own.kind.main_metric in found


def test_every_type_is_named_where_tasks_are_described():
    page = (REQUESTS.parents[3] / "docs" / "own-data.md").read_text()
    assert [name for name in TYPES if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"label_smoothing": 0.1}, "label_smoothing and loss of urgency"),
        ({"objective": "scl"}, "objective scl and loss of urgency"),
    ],
)
def test_other_losses_of_ordered_classes_are_refused(settings, line):
    own = task(f"{URGENCY},labels=low|normal|high")
    with pytest.raises(ValueError, match=line):
        RunConfig(tasks=(own,), **settings)


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


def test_yaml_describes_several_labels_as_a_flag_does(tmp_path):
    (tmp_path / "f.csv").write_text("t,y\na,x;y\nb,y\nc,\n")
    keys = "type: multi-label\ntext: t\nlabel: y\nseparator: ;\nblank: unknown\n"
    (tmp_path / "f.yaml").write_text(f"train: f.csv\n{keys}")
    flag = f"m={tmp_path}/f.csv:type=multi-label,text=t,label=y,separator=;,blank=unknown"
    assert described(f"m={tmp_path}/f.yaml") == described(flag)


def test_another_separator_in_the_labels_is_noticed(tmp_path):
    (tmp_path / "f.csv").write_text("t,y\na,x;y\nb,y\n")
    found = described(f"m={tmp_path}/f.csv:type=multi-label,text=t,label=y")
    assert [*description_lines(found)][1:] == [
        "labels contain ';', such as 'x;y'; separator= can split there"
    ]


@pytest.mark.parametrize(
    ("rest", "error", "line"),
    [
        ("separator= \\, ", DescriptionError, "separator: expected a text without ' , '"),
        ("labels=access|a;b,separator=;", DescriptionError, "without ';', found 'a;b'"),
        ("blank=skip", DescriptionError, "blank: expected one of none, unknown, found 'skip'"),
        ("low=1", DescriptionError, "low: expected another type, found multi-label"),
    ],
)
def test_what_describes_no_labels_is_refused(rest, error, line):
    with pytest.raises(error, match=line):
        described(f"{TAGS},{rest}")


def test_keys_of_several_labels_belong_to_no_other_type():
    with pytest.raises(DescriptionError, match="separator: expected another type, found ordinal"):
        described(f"{URGENCY},labels=low|normal|high,separator=;")
    stored = described(f"{URGENCY},labels=low|normal|high").to_json()
    assert not {"separator", "blank"} & stored.keys()
    with pytest.raises(UserError, match="separator: expected the settings of a task"):
        from_json("urgency", stored | {"separator": "|"})
    with pytest.raises(UserError, match="separator: expected a text, found none"):
        from_json("tags", described(TAGS).to_json() | {"separator": None})


def test_lists_of_labels_become_cells(tmp_path):
    lists = [["a", "b"], [], ["b"]] * 10
    mine = task([f"text {n}" for n in range(30)], lists, name="m", folder=tmp_path)
    assert (mine.described.type, mine.described.labels) == ("multi-label", ("a", "b"))
    rows = rows_of(built(mine.described))
    assert [rows[str(n)] for n in (1, 2, 3)] == [[1, 1], [0, 0], [0, 1]]
    for labels, line in (([["a|b"]], "without '|', found 'a|b'"), ([[None]], "lists of texts")):
        with pytest.raises(SettingsError, match=re.escape(line)):
            task(["x"], labels, folder=tmp_path)
    with pytest.raises(SettingsError, match="labels: expected texts or numbers, found"):
        task(["x"], [["a"]], folder=tmp_path, type="classification")


@pytest.mark.parametrize("change", [{"objective": "scl"}, {"label_smoothing": 0.1}], ids=str)
def test_several_labels_are_no_class(change):
    with pytest.raises(SettingsError, match="expected a task with classes, found tags"):
        RunConfig(tasks=(task(TAGS),), **change)
