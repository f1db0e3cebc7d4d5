"""Few-shot and held-out examples: disjoint, seeded, classes alike."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tasks.filtered import WithoutHeldOut
from tasks.readers import Examples
from tasks.subsets import FewShot, HeldOut
from tasks.text_files import DataError

COUNTS = {"train": (90, 40, 6), "dev": (30, 20, 10)}


@dataclass(frozen=True)
class Invented:
    """Three classes of unequal size."""

    counts: dict
    splits: tuple = ("train", "dev")

    def read(self, folder, split, limit=None):
        targets = np.repeat(np.arange(3), self.counts[split])
        ids = [f"{split}{row}" for row in range(len(targets))]
        return Examples(ids, (list(ids),), targets)

    def where(self, folder, split):
        return f"{split}.tsv"


FOLDER = Path()


def test_few_shots_are_as_many_of_each_class():
    found = FewShot(Invented(COUNTS), 14, 3, 1).read(FOLDER, "train")
    assert np.bincount(found.targets).tolist() == [5, 5, 4]
    assert len(set(found.ids)) == 14
    again = FewShot(Invented(COUNTS), 14, 3, 1).read(FOLDER, "train")
    other = FewShot(Invented(COUNTS), 14, 3, 2).read(FOLDER, "train")
    assert found.ids == again.ids != other.ids
    assert found.texts[0] == found.ids


@pytest.mark.parametrize("count", [(30, 20, 10), (900, 700, 400)])
def test_dev_and_test_part_the_dev_file_whatever_the_seed(count):
    one, other = (FewShot(Invented(COUNTS | {"dev": count}), 9, 3, seed) for seed in (1, 2))
    dev, test = one.read(FOLDER, "dev"), one.read(FOLDER, "test")
    assert not set(dev.ids) & set(test.ids)
    assert len(dev) == min(500, sum(count) // 2)
    assert len(dev) + len(test) == sum(count)
    assert other.read(FOLDER, "dev").ids == dev.ids


@pytest.mark.parametrize(
    ("shots", "expected"),
    [
        (2, "expected a shot a class or more, 3, found 2"),
        (30, "train.tsv: expected 10 examples of class 2 for 30 shots, found 6"),
        (1000, "expected 334 examples of class 0 for 1000 shots, found 90"),
    ],
)
def test_more_than_there_is(shots, expected):
    with pytest.raises(DataError, match=expected):
        FewShot(Invented(COUNTS), shots, 3, 0).read(FOLDER, "train")


def test_a_class_that_is_not_there_and_files_too_small_to_part():
    with pytest.raises(DataError, match="expected 4 examples of class 3 for 19 shots, found 0"):
        FewShot(Invented(COUNTS), 19, 4, 0).read(FOLDER, "train")
    tiny = Invented({"train": (1, 0, 0), "dev": (1, 0, 0)})
    with pytest.raises(DataError, match=r"dev\.tsv: expected two examples or more to part"):
        FewShot(tiny, 1, 1, 0).read(FOLDER, "test")
    with pytest.raises(DataError, match=r"train\.tsv: expected two examples or more to part"):
        HeldOut(tiny).read(FOLDER, "dev")


def test_held_out_examples():
    source = HeldOut(Invented(COUNTS))
    train, dev, test = (source.read(FOLDER, split) for split in source.splits)
    assert (len(train), len(dev), len(test)) == (122, 14, 60)
    assert not set(train.ids) & set(dev.ids)
    assert all(one.startswith("dev") for one in test.ids)
    assert len(source.read(FOLDER, "train", 10)) == 10


def test_equal_texts_stay_on_one_side():
    texts = [f"text {row // 2}" for row in range(20)] + ["A once", "b", "c", "d!"]
    few = FewShot(Given({"train": (texts,), "dev": (texts,)}), 2, 2, 0)
    dev, test = (few.read(FOLDER, split) for split in ("dev", "test"))
    assert (len(dev), len(test)) == (12, 12)
    assert not set(dev.texts[0]) & set(test.texts[0])
    assert few.read(FOLDER, "dev").ids == dev.ids
    with pytest.raises(DataError, match="expected different texts to part, found each too often"):
        HeldOut(Given({"train": (["A.", "a", "a "],)})).read(FOLDER, "dev")


def test_classes_are_named():
    few = FewShot(Invented(COUNTS), 1000, 3, 0, names=("bad", "fair", "good"))
    with pytest.raises(DataError, match="expected 334 examples of class bad for 1000 shots"):
        few.read(FOLDER, "train")


@dataclass(frozen=True)
class Given:
    """Splits of texts as they are written down, a list a column."""

    texts: dict
    splits: tuple = ("train", "dev", "test")

    def read(self, folder, split, limit=None):
        if split not in self.texts:
            raise DataError(f"{split}: no file")
        columns = self.texts[split]
        ids = [str(row) for row in range(len(columns[0]))]
        return Examples(ids, columns, np.arange(len(ids))).some(limit)

    def where(self, folder, split):
        return __file__ if split in self.texts else "nowhere"


def test_training_examples_that_are_held_out_elsewhere_are_left_out():
    own = Given({"train": (["A cat.", "a dog", "one bird", "Fresh"],), "dev": (["One bird!"],)})
    other = Given({"train": (["Fresh"],), "test": (["a CAT"],)})
    found = WithoutHeldOut(own, (other,)).read(FOLDER, "train")
    assert found.texts == (["a dog", "Fresh"],)
    assert (found.targets.tolist(), found.leaked) == ([1, 3], 2)
    assert len(WithoutHeldOut(own, (other,)).read(FOLDER, "train", 1)) == 1
    assert WithoutHeldOut(own, (other,)).read(FOLDER, "dev").texts == (["One bird!"],)
    with pytest.raises(DataError, match="expected examples that are not in dev or test"):
        WithoutHeldOut(Given({"train": (["a"],), "dev": (["A"],)}), ()).read(FOLDER, "train")


def test_a_pair_is_known_by_both_its_texts():
    pairs = Given({"train": (["a", "b", "c"], ["x", "y", "z"]), "dev": (["X", "b"], ["a", "q"])})
    found = WithoutHeldOut(pairs, ()).read(FOLDER, "train")
    assert found.texts == (["b", "c"], ["y", "z"])
