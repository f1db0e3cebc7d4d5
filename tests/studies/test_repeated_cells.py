"""Cells that were run again on another day agree with the published ones."""

from pathlib import Path
from statistics import fmean, stdev

import pytest

from reports.cells import read_cell

RESULTS = Path(__file__).parents[2] / "results"
AGAIN = RESULTS / "again"
FIGURES = {  # study, or study and cell -> keys of the compared figure
    "bees/M5": ("dev", "qqp", "accuracy"),
    "bees/M6": ("dev", "sts", "pearson"),
    "scl_moo": ("test", "sst2", "accuracy"),
    "scl_moo-cls": ("test", "sst2", "accuracy"),
    "lacon": ("test", "sst2", "accuracy"),
    "lacon-200": ("test", "trec", "accuracy"),
    "supercontext": ("linear", "test", "trec", "accuracy"),
    "supercontext-2000": ("linear", "test", "trec", "accuracy"),
}
PUBLISHED = {"bees/M6": "bees-rates/all-1e-4"}  # where it is not a folder of the study's name


def scores(file, keys):
    """Return the figure of each seed of a cell, and the earliest day of its runs."""
    runs = read_cell(file)["seeds"]
    found = {}
    for seed, value in runs.items():
        for key in keys:
            value = value[key]
        found[seed] = value
    return found, min(run["environment"]["date"] for run in runs.values())[:10]


@pytest.mark.parametrize("file", sorted(AGAIN.glob("*/*-*.json")) + sorted(AGAIN.glob("*/M*.json")))
def test_a_repeated_cell_is_within_two_standard_deviations_of_the_published_one(file):
    study = file.parent.name
    cell = f"{study}/{file.stem}"
    keys = FIGURES.get(cell) or FIGURES[study]
    published, day = scores(RESULTS / PUBLISHED.get(cell, study) / file.name, keys)
    again, other_day = scores(file, keys)
    assert again.keys() == published.keys()
    assert day != other_day
    assert abs(fmean(again.values()) - fmean(published.values())) <= 2 * stdev(published.values())
