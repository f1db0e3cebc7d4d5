"""Studies end to end on the tiny encoder: what they leave, and that finished cells are kept."""

import sys
from pathlib import Path

import pytest

from multitask.settings.config import RunConfig
from studies import find_study
from studies.claims import mean_per_seed
from studies.reproduce import requested_seeds
from studies.results import Cell
from studies.runner import training
from studies.study import StudyRequest


def call(monkeypatch, capsys, module, *argv):
    monkeypatch.setattr(sys, "argv", ["study", *map(str, argv)])
    module.main()
    return capsys.readouterr().out


BASE = RunConfig(mode="single", tasks=(), limit=8000)
TINY = ("--encoder", "tiny", "--precision", "fp32")


def request(**changes):
    return StudyRequest(BASE.changed(**changes), Path("results"), Path("runs"))


BASE_OF_A_PAPER = RunConfig(mode="single", tasks=(), encoder="tiny", linear="mkl")


def test_one_mean_a_seed_where_all_have_it():
    several = [{1: 0.1, 2: 0.4, 3: 9.0}, {}, {1: 0.3, 2: 0.0}]
    assert mean_per_seed(several) == pytest.approx({1: 0.2, 2: 0.2})
    assert mean_per_seed([{}, {}]) == {}


def test_more_seeds_than_a_cell_has_of_its_own():
    def seeds(name, own, count):
        return requested_seeds(Cell(name, BASE, own, training), count, find_study("lacon"))

    assert seeds("main", (11711, 2), 1) == (11711,)
    assert seeds("main", (11711, 2), 5) == (11711, 2, 1, 3, 4)
    assert seeds("main", tuple(range(1, 7)), 10) == tuple(range(1, 11))
    assert seeds("sweep-tau-1", (1, 2, 3), 6) == (1, 2, 3)
