"""Splits: protocols and what each draws, removal of leaks, first classes."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.settings import hints_of, methods
from tasks import build_task
from tasks.kinds import classification
from tasks.own_tasks import task as own_task
from tasks.protocols import (
    CappedClasses,
    FewPerClass,
    FewShots,
    HeldOutTenth,
    Protocol,
    apply_protocol,
)
from tasks.readers import Examples
from tasks.splits import doubts, without_leaks
from tasks.tables import DataError
from tests.tasks.sources import Given, Invented

DRAWING = ("few-shot", "capped", "few-a-class")
PROTOCOLS = ("files", "held-out", *DRAWING)
FOLDER = Path()
NAMES = ("bad", "fair", "good")
COUNTS = {"train": (90, 40, 6), "dev": (30, 20, 10)}
MANY = {"train": (90, 400, 200), "dev": (30, 20, 10)}


def protocol(name):
    """Return a protocol with 20 shots and an imbalance of 5, if it has these settings."""
    numbers = {"shots": 20, "imbalance": 5.0}
    cls = methods(Protocol)[name]
    known = hints_of(cls)
    return cls(**{key: value for key, value in numbers.items() if key in known})


def draw(one, counts=MANY, seed=7, names=NAMES):
    """Return the source of a protocol's splits of invented files."""
    source = counts if isinstance(counts, Given) else Invented(counts)
    task = replace(build_task("sst"), kind=classification(len(names), names=names), source=source)
    return apply_protocol(task, one, seed)


def sizes(source, split):
    return np.bincount(source.read(FOLDER, split).targets, minlength=3).tolist()


@pytest.mark.parametrize(
    ("one", "counts", "train", "dev"),
    [
        (FewShots(20), MANY, [7, 7, 6], [30]),
        (FewShots(14), COUNTS, [5, 5, 4], [30]),
        (HeldOutTenth(), MANY, [621], [69]),
        (HeldOutTenth(), COUNTS, [122], [14]),
        (CappedClasses(20), MANY, [19, 19, 19], [1, 1, 1]),
        (CappedClasses(100), MANY, [86, 95, 95], [4, 5, 5]),
        (CappedClasses(3), {"train": (2, 1, 5), "dev": (1, 1, 1)}, [1, 1, 2], [1, 0, 1]),
        (FewPerClass(20), MANY, [20, 20, 20], [20, 20, 20]),
        (FewPerClass(20, 5.0), MANY, [20, 100, 45], [20, 100, 45]),
        (FewPerClass(10, 9.0), MANY, [10, 90, 30], [10, 90, 30]),
    ],
)
def test_a_protocol_draws_disjoint_splits_of_its_sizes(one, counts, train, dev):
    source = draw(one, counts)
    found = {split: source.read(FOLDER, split) for split in source.splits}
    for split, expected in (("train", train), ("dev", dev)):
        counted = sizes(source, split) if len(expected) > 1 else [len(found[split])]
        assert counted == expected
        assert len(set(found[split].ids)) == sum(expected)
    assert not set(found["train"].ids) & set(found["dev"].ids)
    whole = Invented(counts).read(FOLDER, "dev").ids
    if isinstance(one, FewShots):
        assert not set(found["dev"].ids) & set(found["test"].ids)
        assert sorted(found["dev"].ids + found["test"].ids) == sorted(whole)
    else:
        assert found["test"].ids == whole
    assert len(source.read(FOLDER, "train", 3)) == 3


def test_dev_of_few_shots_has_at_most_500_examples_for_any_seed():
    first, second = (draw(FewShots(9), COUNTS | {"dev": (900, 700, 400)}, seed) for seed in (1, 2))
    assert len(first.read(FOLDER, "dev")) == 500
    assert second.read(FOLDER, "dev").ids == first.read(FOLDER, "dev").ids


@pytest.mark.parametrize("name", PROTOCOLS[1:])
@pytest.mark.parametrize("labels", [True, False])
def test_a_test_file_with_labels_is_test(name, labels, tmp_path):
    text = "text\tlabel\n" + "".join(f"text {k}\t{k % 2}\n" for k in range(400))
    for split in ("train", "dev", "test"):
        written = text.replace("text ", f"{split} ")
        if split == "test" and not labels:
            written = re.sub("\t.*", "", written)
        (tmp_path / f"{split}.tsv").write_text(written)
    task = own_task("mine", train=tmp_path, text="text", label="label").build()
    test = apply_protocol(task, protocol(name), 3).read(FOLDER, "test")
    (origin,) = {text.split()[0] for text in test.texts[0]}
    assert origin == ("test" if labels else "dev")
    published = build_task("imdb")
    source = apply_protocol(published, protocol(name), 3)
    for split in ("train", "test"):
        assert source.where(FOLDER, split) == published.source.where(FOLDER, split)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_no_held_out_text_is_in_train_and_no_shot_is_lost(name):
    known = Given({"dev": ([f"train{row}" for row in range(0, 600, 2)],)})
    task = replace(build_task("sst"), kind=classification(3, names=NAMES), source=Invented(MANY))
    found = apply_protocol(task, protocol(name), 3, (known,)).read(FOLDER, "train")
    assert not set(found.texts[0]) & set(known.texts["dev"][0])
    if name == "few-shot":
        assert len(found) == 20
    else:
        assert found.leaked > 0


@pytest.mark.parametrize("name", DRAWING)
def test_the_seed_selects_the_training_examples(name):
    assert protocol(name).draws
    one, again, other = (draw(protocol(name), MANY, s).read(FOLDER, "train") for s in (1, 1, 2))
    assert one.ids == again.ids != other.ids
    assert one.ids == sorted(one.ids, key=lambda text: int(text.removeprefix("train")))
    assert one.texts[0] == one.ids


TINY = {"train": (1, 0, 0), "dev": (1, 0, 0)}


@pytest.mark.parametrize(
    ("one", "counts", "split", "expected"),
    [
        (FewShots(2), COUNTS, "train", "shots must be 3 or more, one for each class, found 2"),
        (FewShots(30), COUNTS, "train", "expected 10 examples of class good for train, found 6"),
        (FewShots(3), TINY, "test", "the file is too small: no example is left"),
        (HeldOutTenth(), TINY, "dev", "the file is too small: no example is left"),
        (FewPerClass(60), MANY, "train", "expected 120 examples of class bad for train and dev"),
        (CappedClasses(5), TINY, "dev", "no class has two or more examples"),
    ],
)
def test_too_few_examples_are_reported(one, counts, split, expected):
    file = "dev" if split == "test" else "train"
    with pytest.raises(DataError, match=rf"({file}\.tsv|protocol few-shot): {expected}"):
        draw(one, counts).read(FOLDER, split)


def test_equal_texts_are_in_one_split():
    texts = [f"text {row // 2}" for row in range(20)] + ["A once", "b", "c", "d!"]
    source = draw(FewShots(2), Given({"train": (texts,), "dev": (texts,)}), names=("no", "yes"))
    dev, test = (source.read(FOLDER, split) for split in ("dev", "test"))
    assert (len(dev), len(test)) == (12, 12)
    assert not set(dev.texts[0]) & set(test.texts[0])
    with pytest.raises(DataError, match="the file is too small: no example is left"):
        draw(HeldOutTenth(), Given({"train": (["A.", "a", "a "],)})).read(FOLDER, "dev")


def test_training_examples_that_are_held_out_elsewhere_are_left_out():
    own = Given({"train": (["A cat.", "a dog", "one bird", "Fresh"],), "dev": (["One bird!"],)})
    other = Given({"train": (["Fresh"],), "test": (["a CAT"],)})
    found = without_leaks(own, (other,)).read(FOLDER, "train")
    assert found.texts == (["a dog", "Fresh"],)
    assert (found.targets.tolist(), found.leaked) == ([1, 3], 2)
    assert len(without_leaks(own, (other,)).read(FOLDER, "train", 1)) == 1
    assert without_leaks(own, (other,)).read(FOLDER, "dev").texts == (["One bird!"],)
    with pytest.raises(DataError, match="every training example is also in dev or test"):
        without_leaks(Given({"train": (["a"],), "dev": (["A"],)}), ()).read(FOLDER, "train")
    pairs = Given({"train": (["a", "b", "c"], ["x", "y", "z"]), "dev": (["X", "b"], ["a", "q"])})
    assert without_leaks(pairs, ()).read(FOLDER, "train").texts == (["b", "c"], ["y", "z"])


def test_doubts_about_splits_are_told_in_one_line_each():
    """The same examples in other sides or cases, a text with two labels, and other scales."""
    texts = [f"text {n}" for n in range(12)]
    train = Examples(texts, (texts, texts[::-1]), np.linspace(0, 1, 12, dtype=np.float32))
    dev = replace(train, texts=(texts[::-1], [one.upper() for one in texts]))
    (leaked, scale) = doubts(build_task("sts"), {"train": train, "dev": dev, "test": train})
    begin = (
        "also in train: 12 of 12 dev examples; also in train: 12 of 12 test examples; --drop-leaks"
    )
    assert leaked.startswith(begin)
    assert leaked.endswith("; also in dev: 12 of 12 test examples")
    one, five = "train from 0.0 to 1.0", "from 0.0 to 5.0"
    assert scale == f"numbers of {one}, of the scale {five}: bring them to one scale"
    twice = replace(train, texts=(["same"] * 12, ["one"] * 12))
    assert [*doubts(build_task("qqp"), {"train": twice})] == ["train texts with several labels: 1"]
    wide = replace(dev, texts=(["other"] * 12, texts), targets=5 * train.targets)
    (_, other) = doubts(build_task("sts"), {"train": train, "dev": wide})
    assert other == f"numbers of dev {five}, of {one}: bring them to one scale"
    assert not [*doubts(build_task("sts"), {"train": wide})]
