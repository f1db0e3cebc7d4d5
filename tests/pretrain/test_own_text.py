"""Sentences and pairs of a file of anybody's."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

import tasks.sample
from multitask.assembly import build_tasks
from multitask.config import RunConfig
from pretrain.texts import own_pairs, pairs_with_negatives, unlabelled
from tasks.text_files import DataError

SAMPLE = Path(tasks.sample.__file__).parent
PAIRS = [("q1", "a1"), ("q2", "a2"), ("q3", "a1"), ("q1", "a1"), (" ", "a9"), ("q4", "")]


@pytest.fixture
def pairs_file(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("n,q,a\n" + "".join(f"{n},{q},{a}\n" for n, (q, a) in enumerate(PAIRS)))
    return str(file)


def test_text_of_ones_own_is_there_once_and_blank_lines_are_not(tmp_path):
    file = tmp_path / "own.txt"
    file.write_text("one\n\n two \none\n" + "".join(f"more {i}\n" for i in range(20)))
    (texts, _), groups = unlabelled(str(file), None, SAMPLE, None)
    assert texts == ["one", "two", *(f"more {i}" for i in range(20))]
    assert groups.tolist() == list(range(22))
    (some, _), groups = unlabelled(str(file), None, SAMPLE, 5)
    assert len(some) == len(groups) == 5
    assert some != texts[:5], "drawn, not the first ones"
    assert set(some) < set(texts)
    with pytest.raises(DataError, match="expected the name of a column"):
        unlabelled(str(tmp_path / "own.csv"), None, SAMPLE, None)


def test_pairs_of_ones_own_are_there_once_and_linked_by_what_they_share(pairs_file):
    (left, right), groups = own_pairs(pairs_file, ("q", "a"), SAMPLE, None)
    assert list(zip(left, right, strict=True)) == [("q1", "a1"), ("q2", "a2"), ("q3", "a1")]
    assert groups[0] == groups[2] != groups[1]
    with pytest.raises(DataError, match="found 1 in 6 rows"):
        own_pairs(pairs_file, ("q", "a"), SAMPLE, 1)
    with pytest.raises(DataError, match="nothing"):
        own_pairs(pairs_file, ("q", "nothing"), SAMPLE, None)


def test_strangers_of_ones_own_pairs_are_texts_of_other_pairs(pairs_file):
    read = partial(own_pairs, pairs_file, ("q", "a"))
    (left, _, strangers), groups = pairs_with_negatives(read, None, pairs_file, 0, SAMPLE, None)
    group_of = dict(zip(["q1", "a1", "q2", "a2", "q3"], [0, 0, 1, 1, 0], strict=True))
    assert all(group_of[a] != group_of[b] for a, b in zip(left, strangers, strict=True))
    assert (groups[:, 0] != groups[:, 1]).all()
    assert (groups >= 0).all()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("p.tsv", "q\ta\nx\ty\nz\ty\n", "found all 2 linked by shared texts"),
        ("p.tsv", "q\ta\nx\ty\nx\t y\nz\t\n", "two different pairs with both texts, found 1 in 3"),
        ("p.txt", "q,a\nx,y\nz,w\n", "expected a file with columns"),
        ("p.jsonl", '{"q": "x"}\n', "p.jsonl, line 1: "),
    ],
)
def test_pairs_that_teach_nothing_are_refused(tmp_path, name, content, expected):
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(DataError, match=re.escape(expected)):
        own_pairs(str(file), ("q", "a"), SAMPLE, None)


@pytest.mark.parametrize(("objective", "columns"), [("pairs", 2), ("ranking", 3), ("triplet", 3)])
def test_an_objective_reads_both_columns(tmp_path, objective, columns):
    file = tmp_path / "p.jsonl"
    rows = [{"q": f"question {n}", "a": f"answer {n}"} for n in range(5)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = {"text": str(file), "text_column": "q", "other_column": "a"}
    config = RunConfig(mode="pretrain", tasks=(), objective=objective, **own)
    (task,) = build_tasks(config).values()
    texts = task.read(SAMPLE, "train").texts
    assert len(texts) == columns
    assert texts[0] == [row["q"] for row in rows]
    assert texts[1] == [row["a"] for row in rows]
