"""One file as several tasks: names and keys, one split, blanks, limits, groups."""

import csv
import itertools
import json
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pytest

from common.errors import UserError
from multitask import RunConfig, table_tasks, task
from multitask.config_tasks import plain_tasks
from tasks import find_task
from tasks.described import DescriptionError
from tasks.readers import text_hash
from tasks.table_splits import SPLITS, TableSplit, row_parts
from tasks.table_tasks import complete_table, make_table, name_of_column
from tasks.task_description import from_json
from tasks.text_files import DataError, stamp

TICKETS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "tickets.csv"
LABELS = ("topic", "urgency:type=classification,labels=low|normal|high", "tags")
HERE = Path(".")


def tickets(labels=LABELS, **options):
    return table_tasks(TICKETS, labels=labels, **{"text": "text", "group": "customer", **options})


def build(own):
    return find_task(own.name, {own.name: own.to_json()})


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


def test_each_column_of_labels_is_a_task():
    found = tickets()
    assert [(one.name, one.type) for one in found] == [
        ("topic", "classification"),
        ("urgency", "classification"),
        ("tags", "multi-label"),
    ]
    assert found[1].labels == ("low", "normal", "high")
    assert found[2].separator == "|"
    for own in found:
        assert own.table == {"topic": "", "urgency": "", "tags": "|"}
        stored = json.loads(json.dumps(own.to_json()))
        assert from_json(own.name, stored) == own
    config = RunConfig(tasks=[*found, "sst"])
    assert config.tasks == ("topic", "urgency", "tags", "sst")
    assert list(config.own_tasks) == ["topic", "urgency", "tags"]


def test_each_inferred_type_has_its_reason():
    lines = complete_table(make_table(str(TICKETS), ["text"], LABELS, {}))[1]
    assert lines == [
        "topic: classification: column 'topic' has 5 different values with words",
        "tags: multi-label: column 'tags' has 6 labels, several in a cell, separated by '|'",
    ]


def test_yaml_a_mapping_and_flags_describe_the_same_table(tmp_path):
    urgency = {"type": "classification", "labels": ["low", "normal", "high"], "name": "how-fast"}
    labels = {"topic": None, "urgency": urgency, "tags": "multi-label"}
    expected = tickets(("topic", "how-fast=" + LABELS[1], "tags:type=multi-label"))
    assert tickets(labels) == expected
    (tmp_path / "tickets.csv").write_bytes(TICKETS.read_bytes())
    text = (
        "train: tickets.csv\ntext: text\ngroup: customer\nlabels:\n  topic:\n  urgency: {type: "
        "classification, labels: [low, normal, high], name: how-fast}\n"
        "  tags: {type: multi-label}\n"
    )
    (tmp_path / "tickets.yaml").write_text(text)
    found = table_tasks(tmp_path / "tickets.yaml")
    moved = [replace(one, train=str(TICKETS)) for one in found]
    assert moved == expected


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("train:", "train: expected a file, found None"),
        ("train: [t.csv]", r"train: expected a file, found \['t\.csv'\]"),
        (f"train: {TICKETS}\ndev: 3", "dev: expected a file, found 3"),
        (f"train: {TICKETS}\ntext: &a [*a]\nlabels: [topic]", "found a list inside itself"),
        ("train: {", "expected a task in YAML, found: "),
    ],
)
def test_yaml_that_describes_no_table_is_refused_in_one_line(content, line, tmp_path):
    (tmp_path / "t.yaml").write_text(content)
    with pytest.raises(DescriptionError, match=line):
        table_tasks(tmp_path / "t.yaml")


def test_columns_become_names_of_tasks():
    names = ("Topic", "How alike (0-10)", "Größe", "über-all_2", "1st Topic", "主题", "Type")
    assert [name_of_column(one) for one in names] == [
        *("topic", "how-alike-0-10", "grosse", "uber-all_2", "1st-topic", "", "type")
    ]
    found = make_table("t.csv", ["a"], ["first=1st Topic", "x=y=z", "a:b:type=regression"], {})
    assert [one[:2] for one in found.labels] == [
        ("first", "1st Topic"),
        ("x", "y=z"),
        ("a-b", "a:b"),
    ]


@pytest.mark.parametrize(
    ("labels", "options", "line"),
    [
        (["1st Topic"], {}, "the first a letter, found '1st-topic'; write NAME=1st Topic"),
        (["type"], {}, "expected another name than type, which is reserved; write NAME=type"),
        (["sst"], {}, "another name than sst, which is reserved; write NAME=sst"),
        (["topic", "Topic"], {}, "expected different names of tasks, found 'topic' twice"),
        (["topic", "x=topic"], {}, "expected different columns, found 'topic' twice"),
        ([], {}, "labels: expected a column or more, found none"),
        (["topic:text=b"], {}, "expected for the whole file, found the key 'text'"),
        (["topic:shape=b"], {}, "expected one of type, .* found the key 'shape'"),
        (["topic:type=regression,type=regression"], {}, "type: expected one value, found two"),
        (["topic"], {"groups": "x"}, "expected keys of train, .*found 'groups'"),
        ([" "], {}, "expected the name of a column, found none"),
        ([3], {}, "expected names of columns, as texts, found"),
        ({"topic": 3}, {}, "expected columns with keys such as type, found 'topic': 3"),
    ],
)
def test_wrong_keys_of_a_table_are_refused(labels, options, line):
    with pytest.raises(DescriptionError, match=line):
        make_table("t.csv", ["text"], labels, options)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"labels": ["topic", "text"]}, "column 'text': expected labels that recur, found free"),
        ({"labels": ["topic", "customer"]}, "group: expected another column than the labels"),
        ({"labels": ["mood"]}, "line 1: expected a column 'mood', found text, topic"),
        ({"text": "mood"}, "expected a column 'mood'"),
        ({"group": "mood"}, "expected a column 'mood'"),
        ({"group": ["a"]}, "group: expected a column, found"),
        ({"dev": str(TICKETS)}, "group: expected a single file that is split, found also"),
        ({"file": "gone.csv"}, "gone.csv: expected a table with topic, found none"),
        ({"file": "gone.yaml"}, "gone.yaml: expected text in it, found it outside"),
        ({"text": ["text", "topic", "tags"]}, "expected one text column, or two for pairs, found"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(change, line):
    given = {"file": TICKETS, "text": "text", "labels": ["topic"], "group": "customer", **change}

    def read():
        for own in table_tasks(given.pop("file"), **given):
            build(own).read(HERE, "train")

    with pytest.raises(UserError, match=line) as error:
        read()
    assert "\n" not in str(error.value)


def test_a_row_is_in_the_same_split_for_all_tasks_whatever_its_blanks():
    rows = list(csv.DictReader(TICKETS.open(encoding="utf-8")))
    side: dict[str, str] = {}  # of an id
    for own in tickets():
        task = build(own)
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
    customers = {
        split: {rows[int(i) - 1]["customer"] for i in side if side[i] == split} for split in SPLITS
    }
    assert not customers["train"] & customers["dev"]
    assert not customers["train"] & customers["test"]
    assert not customers["dev"] & customers["test"]
    sizes = {split: [*side.values()].count(split) for split in SPLITS}
    largest = max(
        sum(row["customer"] == one for row in rows) for one in {r["customer"] for r in rows}
    )
    assert abs(sizes["dev"] - 40) <= largest
    assert abs(sizes["test"] - 40) <= largest
    for column in ("topic", "urgency"):  # every class is in every split
        for split in SPLITS:
            labels = {rows[int(i) - 1][column] for i in side if side[i] == split}
            assert labels >= {row[column] for row in rows}


def test_tasks_of_one_table_have_one_key():
    found = [build(own) for own in tickets()]
    assert len({task.shares_rows for task in found}) == 1
    assert found[0].shares_rows is not None
    others = [*tickets(group=None), *tickets(labels=["topic", "tags"]), *tickets(id="text")]
    joint = tickets(labels=["topic"], text=["text", "customer"], group=None)
    assert not {build(one).shares_rows for one in [*others, *joint]} & {found[0].shares_rows}
    alone = replace(tickets()[0], table=None, group=None)
    assert find_task("topic", {"topic": alone.to_json()}).shares_rows is None


def test_a_limit_draws_the_same_rows_for_all_tasks():
    """A task's rows are the first with a label, in one order of all rows."""
    every, some = (
        [rows_of(build(own), limit)["train"] for own in tickets()] for limit in (None, 90)
    )
    assert [len(one) for one in some] == [90] * 3
    for one, other in ((0, 1), (1, 0), (0, 2)):  # rows with both labels, of the shorter list
        both = set(every[one]) & set(every[other])
        drawn, others = set(some[one]) & both, set(some[other]) & both
        assert drawn <= others or others <= drawn
    found = build(tickets()[0]).read(HERE, "train", 90)
    assert found.available == len(every[0])
    assert len(build(tickets()[0]).read(HERE, "train", 0.5)) == round(0.5 * len(every[0]))


def test_equal_texts_and_groups_stay_together_and_rows_without_text_are_skipped(table):
    rng = np.random.default_rng(0)
    rows = [
        (f"Text {rng.integers(400)}!", f"text {rng.integers(9)}", label, rng.choice(99) or "")
        for label in ["a", "b", "c|a", ""] * 25
    ]
    rows += [("", "one", "a", 5), ("two", " ", "b", 5)]
    file = table(("first", "second", "y", "who"), rows)
    for text in ("first", ["first", "second"]):
        (own,) = table_tasks(file, text=text, labels=["y:type=multi-label"], group="who")
        found = rows_of(build(own))
        side = {int(one) - 1: split for split, ids in found.items() for one in ids}
        assert len(side) == (101 if text == "first" else 100)
        seen: dict[object, str] = {}
        for row, split in side.items():
            texts = rows[row][: 1 if text == "first" else 2]
            keys = [text_hash(texts), *([("who", rows[row][3])] if rows[row][3] else [])]
            for key in keys:
                assert seen.setdefault(key, split) == split


def test_files_for_dev_and_test_are_used_as_they_are(table):
    rows = [(f"text {n}", "ab"[n % 2], "xyz"[n % 3]) for n in range(60)]
    train = table(("text", "one", "two"), rows[:40])
    dev = table(("text", "one", "two"), [*rows[40:50], ("more", "", "x")], "dev.csv")
    test = table(("text", "one"), [row[:2] for row in rows[50:]], "test.csv")
    labels = ["one", "two"]
    tasks = [
        build(own) for own in table_tasks(train, text="text", labels=labels, dev=dev, test=test)
    ]
    assert [[len(ids) for ids in rows_of(task).values()] for task in tasks] == [
        [40, 10, 10],
        [40, 11, 10],
    ]
    assert [task.read(HERE, "test").targets is None for task in tasks] == [False, True]
    assert tasks[0].shares_rows == tasks[1].shares_rows is not None
    # Without a file for dev, a tenth of train.
    tasks = [build(own) for own in table_tasks(train, text="text", labels=["one"], test=test)]
    assert [len(ids) for ids in rows_of(tasks[0]).values()] == [36, 4, 10]


def test_a_folder_is_a_table(table, tmp_path):
    rows = [(f"text {n}", "ab"[n % 2]) for n in range(30)]
    for name in ("train.csv", "validation.csv"):
        table(("text", "y"), rows, name)
    (own,) = table_tasks(tmp_path, text="text", labels=["y"])
    assert rows_of(build(own)) == {
        split: [str(n) for n in range(1, 31)] for split in ("train", "dev")
    }


def test_a_single_task_may_have_groups():
    text = f"topic={TICKETS}:type=classification,text=text,label=topic"
    own = task(f"{text},group=customer")
    assert own == tickets(labels=["topic"])[0]
    assert task(text) == replace(own, table=None, group=None)
    with pytest.raises(DescriptionError, match="group: expected a single file that is split"):
        task(f"{text},group=customer,dev={TICKETS}")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"table": {"tags": "|"}}, "table: expected column 'topic' in it"),
        ({"table": None}, "group: expected also a table"),
        ({"table": ["topic"]}, "table: expected"),
    ],
)
def test_stored_splits_are_checked(change, line):
    stored = {**tickets()[0].to_json(), **change}
    with pytest.raises(UserError, match=line):
        from_json("topic", stored)


def test_a_split_is_made_again_when_the_file_changes(table):
    rows = [(f"text {n}", "ab"[n % 2]) for n in range(40)]
    file = table(("text", "y"), rows)
    split = TableSplit(("text",), (("y", ""),), test=0.1)
    first = row_parts(file, split, stamp(file))
    assert row_parts(file, split, stamp(file)) is first
    table(("text", "y"), rows[:30])
    assert np.bincount(row_parts(file, split, stamp(file))).tolist() == [24, 3, 3]


def test_numbers_are_stratified_by_quarters(table):
    rows = [(f"text {n}", n / 7, "") for n in range(200)]
    file = table(("text", "y", "z"), rows)
    parts = row_parts(file, TableSplit(("text",), (("y", ""), ("z", "")), test=0.1), stamp(file))
    for quarter in range(4):
        own = parts[50 * quarter : 50 * (quarter + 1)]
        assert np.bincount(own, minlength=3).tolist() == [40, 5, 5]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([("a", "x", 1), ("b", "y", 1)], "expected more rows, .*train, dev, test, found 2 rows"),
        ([(f"t{n}", "xy"[n % 2], 1) for n in range(30)], "found 30 rows in 1 groups, which equal"),
        (
            [(f"t{n}", "xy"[n % 2] if n < 2 else "", n) for n in range(30)],
            "expected a label in column 'y', found none in .*; leave the column out",
        ),
    ],
)
def test_tables_that_cannot_be_split_are_refused(rows, line, table):
    (own,) = table_tasks(table(("text", "y", "g"), rows), text="text", labels=["y"], group="g")
    with pytest.raises(DataError, match=line):
        rows_of(build(own))


def test_lists_of_labels_are_inferred(tmp_path):
    rows = [{"text": f"row {n}", "tags": ["a", "b"][: n % 3]} for n in range(30)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (found,) = table_tasks(tmp_path / "t.jsonl", text="text", labels=["tags"])
    assert (found.type, found.labels) == ("multi-label", ("a", "b"))
    assert sum(map(len, rows_of(build(found)).values())) == 30


def test_a_column_of_lists_without_two_labels_in_a_cell_is_multi_label(tmp_path):
    rows = [{"text": f"row {n}", "tags": [["a"], ["b"]][n % 2]} for n in range(30)]
    (tmp_path / "t.jsonl").write_text(
        "\n".join(map(json.dumps, [{"text": "x", "tags": None}, *rows]))
    )
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "t.parquet")
    for name in ("t.jsonl", "t.parquet"):
        described, lines = complete_table(make_table(str(tmp_path / name), ["text"], ["tags"], {}))
        assert [(one.type, one.labels) for one in described] == [("multi-label", ("a", "b"))]
        assert lines == ["tags: multi-label: column 'tags' has lists with 2 different labels"]
    rows = [{"text": f"row {n}", "tags": [n / 7, n / 9]} for n in range(1, 30)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match="expected labels that recur"):
        table_tasks(tmp_path / "t.jsonl", text="text", labels=["tags"])


def test_tasks_of_one_file_have_the_same_split_whatever_their_blanks(table):
    words = "xy"
    rows = [
        [f"text {n}", words[n % 2] * (n % 7 > 0), words[n % 2] * (n % 5 > 0)] for n in range(200)
    ]
    file = table(["t", "a", "b"], rows)
    own = [task(f"{name}={file}:type=classification,text=t,label={name}") for name in "ab"]
    found = {name: rows_of(one) for name, one in plain_tasks(RunConfig(tasks=own)).items()}
    for column, (name, other) in enumerate(("ab", "ba"), 1):
        for one, another in itertools.permutations(SPLITS, 2):
            assert not set(found[name][one]) & set(found[other][another])
        labelled = [str(n) for n, row in enumerate(rows, 1) if row[column]]
        assert sorted(map(int, itertools.chain(*found[name].values()))) == list(map(int, labelled))
        assert 10 < len(found[name]["test"]) < 20
    config = RunConfig(tasks=own)
    stored = RunConfig.from_json(config.to_json())
    for one in (config.changed(tasks=("a",)), stored.changed(tasks=("a",))):
        assert rows_of(plain_tasks(one)["a"]) == found["a"], "the split is that of both tasks"
    alone = [RunConfig(tasks=(one,)).own_tasks[one.name] for one in own]
    apart = {
        "a": own[0],
        "b": replace(own[1], dev=str(file)),
        "c": replace(own[1], name="c", texts=("a",)),
    }
    kept = RunConfig(tasks=tuple(replace(one, name=name) for name, one in apart.items())).own_tasks
    assert [one.get("table") for one in (*alone, *kept.values())] == [None] * 5
