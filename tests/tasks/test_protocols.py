"""Protocols by their names: each makes something of a task's files, the guard in its place."""

from pathlib import Path

import pytest

from multitask.methods import methods
from tasks import build_task
from tasks.filtered import WithoutHeldOut
from tasks.protocols import drawn
from tasks.sampled import Capped, Even
from tasks.subsets import FewShot, HeldOut

DRAWN = {"few-shot": FewShot, "held-out": HeldOut, "capped": Capped}
DRAWN |= {"few-a-class": Even, "imbalanced": Even}
PROTOCOLS = ("files", *DRAWN)


def protocol(name):
    """With 20 shots, and 5 times as many of the most frequent class, where it has such numbers."""
    numbers = {"shots": 20, "imbalance": 5.0}
    cls = methods("protocol")[name]
    return cls(**{key: value for key, value in numbers.items() if key in cls.by_key()})


def test_protocols_and_those_that_count_examples():
    counting = {name for name in PROTOCOLS if protocol(name).counts_examples}
    assert counting == {name for name, made in DRAWN.items() if made is not HeldOut}


@pytest.mark.parametrize("name", DRAWN)
def test_a_protocol_draws_what_its_numbers_say(name):
    task, one = build_task("sst2"), protocol(name)
    source = drawn(task, one, 3)
    assert type(source) is DRAWN[name]
    assert source.source is task.source
    if one.counts_examples:
        assert (source.shots, source.classes, source.seed) == (20, 2, 3)
    if DRAWN[name] is Even:
        assert source.ratio == (5.0 if name == "imbalanced" else 1)
    published = drawn(build_task("imdb"), one, 3)
    assert name == "held-out" or published.test == "test"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_guard_is_last_but_where_shots_would_be_lost(name):
    other = build_task("sts").source
    source = drawn(build_task("sst"), protocol(name), 3, (other,))
    if name == "few-shot":
        source = source.source
    assert isinstance(source, WithoutHeldOut)
    assert source.others == (other,)
    assert source.where(Path(), "train") == build_task("sst").source.where(Path(), "train")
