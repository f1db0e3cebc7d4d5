"""Sources made of other sources: leaks left out, first classes."""

from pathlib import Path

import pytest

from tasks.splits import WithoutLeaks, first_classes
from tasks.text_files import DataError
from tests.tasks.sources import Given, Invented

FOLDER = Path()


def test_the_first_classes():
    source = first_classes(Invented({"train": (90, 400, 200)}), 2)
    assert sorted(set(source.read(FOLDER, "train").targets)) == [0, 1]
    assert len(source.read(FOLDER, "train")) == 490
    assert len(source.read(FOLDER, "train", 10)) == 10
    assert source.splits == ("train", "dev")


def test_training_examples_that_are_held_out_elsewhere_are_left_out():
    own = Given({"train": (["A cat.", "a dog", "one bird", "Fresh"],), "dev": (["One bird!"],)})
    other = Given({"train": (["Fresh"],), "test": (["a CAT"],)})
    found = WithoutLeaks(own, (other,)).read(FOLDER, "train")
    assert found.texts == (["a dog", "Fresh"],)
    assert (found.targets.tolist(), found.leaked) == ([1, 3], 2)
    assert len(WithoutLeaks(own, (other,)).read(FOLDER, "train", 1)) == 1
    assert WithoutLeaks(own, (other,)).read(FOLDER, "dev").texts == (["One bird!"],)
    with pytest.raises(DataError, match="expected examples that are not in dev or test"):
        WithoutLeaks(Given({"train": (["a"],), "dev": (["A"],)}), ()).read(FOLDER, "train")


def test_a_pair_is_known_by_both_its_texts():
    pairs = Given({"train": (["a", "b", "c"], ["x", "y", "z"]), "dev": (["X", "b"], ["a", "q"])})
    found = WithoutLeaks(pairs, ()).read(FOLDER, "train")
    assert found.texts == (["b", "c"], ["y", "z"])
