"""Protocols: what each draws of a task's files, and the guard against leaks in its place."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from multitask.methods import methods
from tasks import build_task
from tasks.base import classification
from tasks.protocols import capped, drawn, even, few_shot, held_out_tenth
from tasks.splits import WithoutLeaks
from tasks.text_files import DataError
from tests.tasks.sources import Given, Invented

DRAWING = ("few-shot", "capped", "few-a-class", "imbalanced")
PROTOCOLS = ("files", "held-out", *DRAWING)
FOLDER = Path()
NAMES = ("bad", "fair", "good")
COUNTS = {"train": (90, 40, 6), "dev": (30, 20, 10)}
MANY = {"train": (90, 400, 200), "dev": (30, 20, 10)}


def protocol(name):
    """With 20 shots, and 5 times as many of the most frequent class, where it has such numbers."""
    numbers = {"shots": 20, "imbalance": 5.0}
    cls = methods("protocol")[name]
    return cls(**{key: value for key, value in numbers.items() if key in cls.by_key()})


def test_protocols_that_count_examples():
    assert {name for name in PROTOCOLS if protocol(name).counts_examples} == set(DRAWING)


@pytest.mark.parametrize(
    ("name", "train", "dev"),
    [
        ("few-shot", [7, 7, 6], [30]),
        ("held-out", [90, 400, 200], [69]),
        ("capped", [19, 19, 19], [1, 1, 1]),
        ("few-a-class", [20, 20, 20], [20, 20, 20]),
        ("imbalanced", [20, 100, 45], [20, 100, 45]),
    ],
)
def test_a_protocol_draws_what_its_numbers_say(name, train, dev):
    task = replace(build_task("sst"), source=Invented(MANY), kind=classification(3, names=NAMES))
    source = drawn(task, protocol(name), 3)
    if name == "held-out":
        assert len(source.read(FOLDER, "train")) + sum(dev) == sum(train)
    else:
        assert classes(source, "train") == train
    assert len(source.read(FOLDER, "dev")) == sum(dev)
    assert len(source.read(FOLDER, "test")) == (30 if name == "few-shot" else 60)


@pytest.mark.parametrize("name", PROTOCOLS[1:])
def test_a_published_test_file_is_test(name):
    task = build_task("imdb")
    source = drawn(task, protocol(name), 3)
    for split in ("train", "test"):
        assert source.where(FOLDER, split) == task.source.where(FOLDER, split)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_guard_is_last_but_where_shots_would_be_lost(name):
    other = build_task("sts").source
    source = drawn(build_task("sst"), protocol(name), 3, (other,))
    if name == "few-shot":
        source = source.source
    assert isinstance(source, WithoutLeaks)
    assert source.others == (other,)
    assert source.where(Path(), "train") == build_task("sst").source.where(Path(), "train")


def classes(source, split):
    return np.bincount(source.read(FOLDER, split).targets, minlength=3).tolist()


def test_at_most_so_many_of_a_class_a_twentieth_of_them_for_dev():
    source = capped(Invented(MANY), 100, 3, 7, "dev")
    train, dev = (source.read(FOLDER, split) for split in ("train", "dev"))
    assert np.bincount(dev.targets).tolist() == [4, 5, 5]
    assert len(train) + len(dev) == 290
    assert not set(train.ids) & set(dev.ids)
    both = np.bincount([*train.targets, *dev.targets])
    assert both.tolist() == [90, 100, 100]
    assert len(source.read(FOLDER, "test")) == 60


def test_few_of_each_class_and_as_many_for_dev():
    source = even(Invented(MANY), 20, NAMES, 7, "dev")
    assert classes(source, "train") == classes(source, "dev") == [20, 20, 20]
    assert not set(source.read(FOLDER, "train").ids) & set(source.read(FOLDER, "dev").ids)
    assert source.read(FOLDER, "test").ids == Invented(MANY).read(FOLDER, "dev").ids


@pytest.mark.parametrize(
    ("ratio", "expected"), [(4, [10, 40, 20]), (9, [10, 90, 30]), (1, [10, 10, 10])]
)
def test_the_rarest_class_stays_the_rarest(ratio, expected):
    source = even(Invented(MANY), 10, NAMES, 7, "dev", ratio)
    assert classes(source, "train") == classes(source, "dev") == expected


def of_three(seed, test="dev"):
    return capped(Invented(MANY), 20, 3, seed, test)


def even_three(seed, test="dev"):
    return even(Invented(MANY), 20, NAMES, seed, test)


@pytest.mark.parametrize("make", [of_three, even_three])
def test_the_seed_decides(make):
    one, again, other = (make(seed).read(FOLDER, "train") for seed in (1, 1, 2))
    assert one.ids == again.ids != other.ids
    assert one.ids == sorted(one.ids, key=lambda text: int(text.removeprefix("train")))


def test_too_few_examples_are_reported():
    with pytest.raises(
        DataError, match=r"train\.tsv: expected 120 examples of class bad, half of "
    ):
        even(Invented(MANY), 60, NAMES, 7, "dev").read(FOLDER, "train")


@pytest.mark.parametrize("make", [of_three, even_three])
def test_another_split_with_labels_is_test(make):
    source = make(7, test="train")
    assert len(source.read(FOLDER, "test")) == 690
    assert source.where(FOLDER, "test") == "train.tsv"


def test_few_shots_are_as_many_of_each_class():
    found = few_shot(Invented(COUNTS), 14, NAMES, 1).read(FOLDER, "train")
    assert np.bincount(found.targets).tolist() == [5, 5, 4]
    assert len(set(found.ids)) == 14
    again = few_shot(Invented(COUNTS), 14, NAMES, 1).read(FOLDER, "train")
    other = few_shot(Invented(COUNTS), 14, NAMES, 2).read(FOLDER, "train")
    assert found.ids == again.ids != other.ids
    assert found.texts[0] == found.ids


@pytest.mark.parametrize("count", [(30, 20, 10), (900, 700, 400)])
def test_dev_and_test_part_the_dev_file_whatever_the_seed(count):
    one, other = (few_shot(Invented(COUNTS | {"dev": count}), 9, NAMES, seed) for seed in (1, 2))
    dev, test = one.read(FOLDER, "dev"), one.read(FOLDER, "test")
    assert not set(dev.ids) & set(test.ids)
    assert len(dev) == min(500, sum(count) // 2)
    assert len(dev) + len(test) == sum(count)
    assert other.read(FOLDER, "dev").ids == dev.ids


@pytest.mark.parametrize(
    ("shots", "expected"),
    [
        (2, "expected a shot per class, 3, found 2"),
        (30, "train.tsv: expected 10 examples of class good for 30 shots, found 6"),
        (1000, "expected 334 examples of class bad for 1000 shots, found 90"),
    ],
)
def test_more_than_there_is(shots, expected):
    with pytest.raises(DataError, match=expected):
        few_shot(Invented(COUNTS), shots, NAMES, 0).read(FOLDER, "train")


def test_a_class_that_is_not_there_and_files_too_small_to_part():
    with pytest.raises(DataError, match="expected 4 examples of class best for 19 shots, found 0"):
        few_shot(Invented(COUNTS), 19, (*NAMES, "best"), 0).read(FOLDER, "train")
    tiny = Invented({"train": (1, 0, 0), "dev": (1, 0, 0)})
    with pytest.raises(DataError, match=r"dev\.tsv: expected at least two examples to split"):
        few_shot(tiny, 1, ("bad",), 0).read(FOLDER, "test")
    with pytest.raises(DataError, match=r"train\.tsv: expected at least two examples to split"):
        held_out_tenth(tiny).read(FOLDER, "dev")


def test_held_out_examples():
    source = held_out_tenth(Invented(COUNTS))
    train, dev, test = (source.read(FOLDER, split) for split in source.splits)
    assert (len(train), len(dev), len(test)) == (122, 14, 60)
    assert not set(train.ids) & set(dev.ids)
    assert all(one.startswith("dev") for one in test.ids)
    assert len(source.read(FOLDER, "train", 10)) == 10


def test_equal_texts_stay_on_one_side():
    texts = [f"text {row // 2}" for row in range(20)] + ["A once", "b", "c", "d!"]
    few = few_shot(Given({"train": (texts,), "dev": (texts,)}), 2, ("no", "yes"), 0)
    dev, test = (few.read(FOLDER, split) for split in ("dev", "test"))
    assert (len(dev), len(test)) == (12, 12)
    assert not set(dev.texts[0]) & set(test.texts[0])
    assert few.read(FOLDER, "dev").ids == dev.ids
    with pytest.raises(DataError, match="expected different texts to split, found each too often"):
        held_out_tenth(Given({"train": (["A.", "a", "a "],)})).read(FOLDER, "dev")
