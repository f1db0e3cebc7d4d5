"""Examples drawn class by class: disjoint, seeded, in the numbers asked for."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tasks.filtered import FirstClasses
from tasks.readers import Examples
from tasks.sampled import Capped, Even
from tasks.text_files import DataError

COUNTS = {"train": (90, 400, 200), "dev": (30, 20, 10)}
FOLDER = Path()


@dataclass(frozen=True)
class Invented:
    """Three classes of unequal size."""

    splits: tuple = ("train", "dev")

    def read(self, folder, split, limit=None):
        targets = np.repeat(np.arange(3), COUNTS[split])
        ids = [f"{split}{row}" for row in range(len(targets))]
        return Examples(ids, (list(ids),), targets)

    def where(self, folder, split):
        return f"{split}.tsv"


def classes(source, split):
    return np.bincount(source.read(FOLDER, split).targets, minlength=3).tolist()


def test_at_most_so_many_of_a_class_a_twentieth_of_them_for_dev():
    source = Capped(Invented(), 100, 3, 7)
    train, dev = (source.read(FOLDER, split) for split in ("train", "dev"))
    assert np.bincount(dev.targets).tolist() == [4, 5, 5]
    assert len(train) + len(dev) == 290
    assert not set(train.ids) & set(dev.ids)
    both = np.bincount([*train.targets, *dev.targets])
    assert both.tolist() == [90, 100, 100]
    assert len(source.read(FOLDER, "test")) == 60


def test_few_of_each_class_and_as_many_for_dev():
    source = Even(Invented(), 20, 3, 7)
    assert classes(source, "train") == classes(source, "dev") == [20, 20, 20]
    assert not set(source.read(FOLDER, "train").ids) & set(source.read(FOLDER, "dev").ids)
    assert source.read(FOLDER, "test").ids == Invented().read(FOLDER, "dev").ids


@pytest.mark.parametrize(
    ("ratio", "expected"), [(4, [10, 40, 20]), (9, [10, 90, 30]), (1, [10, 10, 10])]
)
def test_the_rarest_class_stays_the_rarest(ratio, expected):
    source = Even(Invented(), 10, 3, 7, ratio)
    assert classes(source, "train") == classes(source, "dev") == expected


@pytest.mark.parametrize("make", [Capped, Even])
def test_the_seed_decides(make):
    one, again, other = (make(Invented(), 20, 3, seed).read(FOLDER, "train") for seed in (1, 1, 2))
    assert one.ids == again.ids != other.ids
    assert one.ids == sorted(one.ids, key=lambda text: int(text.removeprefix("train")))


def test_too_few_examples_are_told():
    with pytest.raises(DataError, match=r"train\.tsv: expected 120 examples of class 0, half of "):
        Even(Invented(), 60, 3, 7).read(FOLDER, "train")


@pytest.mark.parametrize("make", [Capped, Even])
def test_a_published_test_file_is_test(make):
    source = make(Invented(), 20, 3, 7, test="train")
    assert len(source.read(FOLDER, "test")) == 690
    assert source.where(FOLDER, "test") == "train.tsv"


def test_the_first_classes():
    source = FirstClasses(Invented(), 2)
    assert classes(source, "train") == [90, 400, 0]
    assert len(source.read(FOLDER, "train", 10)) == 10
    assert source.splits == ("train", "dev")
