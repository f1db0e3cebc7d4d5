"""One file as several tasks: names and keys, one split by a hash, blanks."""

import csv
from pathlib import Path

import pytest

from common.errors import UserError
from multitask import RunConfig, table_tasks
from tasks.own_tasks import parse_column
from tasks.splits import text_hash

TICKETS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "tickets.csv"
LABELS = ("topic", "urgency:type=classification,labels=low|normal|high", "tags:type=multi-label")
HERE = Path(".")
SPLITS = ("train", "dev", "test")


def tickets(labels=LABELS, **options):
    return table_tasks(TICKETS, labels=labels, **{"text": "text", **options})


def rows_of(task, limit=None):
    """Return the ids of each split."""
    return {split: task.read(HERE, split, limit).ids for split in task.source.splits}


@pytest.fixture
def table(tmp_path):
    """A writer of a small table: the header and rows."""

    def write(header, rows, name="t.csv"):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        return tmp_path / name

    return write


def test_one_column_may_be_two_tasks():
    found = tickets(("a=topic", "b=topic:type=multi-label"))
    assert [(one.name, one.label) for one in found] == [("a", ("topic",)), ("b", ("topic",))]
    with pytest.raises(UserError, match="topic is named twice"):
        RunConfig(tasks=tickets(("topic", "topic:type=multi-label")))


@pytest.mark.parametrize(("other", "found"), [("POS", "pos"), ("pos", "POS")])
def test_classes_that_differ_in_case_only_are_read_as_they_are(table, other, found):
    rows = [[f"text {n}", one] for n, one in enumerate(("Pos", other, "neg", "neg") * 10)]
    dev = table(["text", "y"], [["a", "NEG"], ["b", found]], "dev.csv")
    (own,) = table_tasks(table(["text", "y"], rows), text="text", labels="y", dev=dev)
    with pytest.raises(
        UserError, match=f"dev.csv, line 3: y: expected .*{other}.*, found '{found}'"
    ):
        own.build().read(HERE, "dev")


def test_columns_become_names_of_tasks():
    names = ("Topic", "How alike (0-10)", "Größe", "über-all_2", "1st Topic", "主题", "Type")
    assert [parse_column(one)["name"] for one in names] == [
        *("topic", "how-alike-0-10", "grosse", "uber-all_2", "1st-topic", "", "type")
    ]
    written = ("first=1st Topic", "x=y=z", "a:b:type=regression", "B=C")
    assert [*map(parse_column, written)] == [
        {"name": "first", "label": "1st Topic"},
        {"name": "x", "label": "y=z"},
        {"name": "a-b", "label": "a:b", "type": "regression"},
        {"name": "b-c", "label": "B=C"},
    ]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"labels": ["1st Topic"]}, "'1st-topic': a name has 1 to 32 lower-case"),
        ({"labels": []}, "labels: name a column of"),
        ({"labels": ["topic:shape=b"]}, "topic: no key 'shape'; choose from "),
        ({"text": "topic"}, "column 'topic' is named twice, as text or label"),
        ({"text": "topic", "labels": ["text"]}, "tickets.csv: text: the labels look like free"),
        ({"labels": ["mood"]}, "line 1: expected a column 'mood', found text, topic"),
    ],
)
def test_wrong_tables_are_refused_in_one_line(change, line):
    with pytest.raises(UserError, match=line) as error:
        tickets(**{"labels": ["topic"], **change})[0].build().read(HERE, "train")
    assert "\n" not in str(error.value)


def test_a_row_is_in_the_same_split_for_all_tasks_whatever_its_blanks():
    rows = list(csv.DictReader(TICKETS.open(encoding="utf-8")))
    side: dict[str, str] = {}  # of an id
    for own in tickets():
        task = own.build()
        found = rows_of(task)
        blank = 0 if own.name == "tags" else 60
        assert sum(map(len, found.values())) == 400 - blank
        assert task.read(HERE, "train").blank_rows == blank
        assert task.read(HERE, "dev").blank_rows == task.read(HERE, "test").blank_rows == 0
        for split, ids in found.items():
            assert ids == sorted(ids, key=int)
            for one in ids:
                assert side.setdefault(one, split) == split
            texts = task.read(HERE, split).texts[0]
            assert texts == [rows[int(one) - 1]["text"] for one in ids]
    assert text_hash(["Text 1!"]) == text_hash(["text 1"])
    for row, split in side.items():
        number = text_hash([rows[int(row) - 1]["text"]]) % 10
        assert split == {8: "dev", 9: "test"}.get(number, "train")


@pytest.mark.parametrize(
    ("names", "column", "sizes"),
    [
        (("train", "train", "dev", "test"), "split", {"train": 20, "dev": 10, "test": 10}),
        (("train", "Validation "), "split", {"train": 20, "dev": 20}),
        (("train", "train", "train", "test"), "fold", {"train": 27, "dev": 3, "test": 10}),
        (("a", "b"), "split", {"train": 29, "dev": 6, "test": 5}),
    ],
)
def test_a_column_names_the_splits(table, names, column, sizes):
    rows = [(f"text {n}", "ab"[n // 4 % 2], names[n % len(names)]) for n in range(40)]
    keys = {} if column == "split" else {"split": column}
    (own,) = table_tasks(table(("t", "y", column), rows), text="t", labels="y", **keys)
    found = rows_of(own.build())
    assert {split: len(ids) for split, ids in found.items()} == sizes
    assert sum(sizes.values()) == len({one for ids in found.values() for one in ids})
    assert any("says which rows are train" in line for line in own.lines()) == ("train" in names)
