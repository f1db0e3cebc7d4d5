"""Protocols by their names: each makes something of a task's files, the guard in its place."""

from pathlib import Path

import pytest

from cli.protocol import PROTOCOLS as FLAGS
from cli.protocol import SHOTS
from tasks import build_task
from tasks.filtered import WithoutHeldOut
from tasks.protocols import PROTOCOLS, Drawing, source_of
from tasks.sampled import Capped, Even
from tasks.subsets import FewShot, HeldOut

DRAWN = {"few-shot": FewShot, "held-out": HeldOut, "capped": Capped}
DRAWN |= {"few-a-class": Even, "imbalanced": Even}


def test_flags_name_what_there_is():
    assert tuple(FLAGS) == tuple(PROTOCOLS)
    assert {name for name, made in DRAWN.items() if made is not HeldOut} == set(SHOTS)


@pytest.mark.parametrize("name", DRAWN)
def test_a_protocol_draws_what_its_numbers_say(name):
    task = build_task("sst2")
    ratio = 5.0 if name == "imbalanced" else None
    source = source_of(task, Drawing(name, 20, ratio, 3))
    assert type(source) is DRAWN[name]
    assert source.source is task.source
    if name in SHOTS:
        assert (source.shots, source.classes, source.seed) == (20, 2, 3)
    if DRAWN[name] is Even:
        assert source.ratio == (ratio or 1)
    published = source_of(build_task("imdb"), Drawing(name, 20, ratio, 3))
    assert name == "held-out" or published.test == "test"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_guard_is_last_but_where_shots_would_be_lost(name):
    other = build_task("sts").source
    source = source_of(build_task("sst"), Drawing(name, 20, None, 3, (other,)))
    if name == "few-shot":
        source = source.source
    assert isinstance(source, WithoutHeldOut)
    assert source.others == (other,)
    assert source.where(Path(), "train") == build_task("sst").source.where(Path(), "train")
