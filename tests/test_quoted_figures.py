"""Figures that the README quotes are those of the stored cells."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

import pytest

from reports.cells import read_cell

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
OVERALL = (("sst", "accuracy"), ("qqp", "accuracy"), ("sts", "pearson"))


def dev(file: str, task: str, metric: str) -> list[float]:
    """Return a dev figure of each seed of a cell, in per cent."""
    cell = read_cell(RESULTS / file)
    runs = cell["seeds"].values() if "seeds" in cell else [cell]
    return [100 * run["dev"][task][metric] for run in runs]


def mean(values: list[float]) -> str:
    return f"{fmean(values):.1f}"


def spread(values: list[float]) -> str:
    return f"{fmean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else mean(values)


def quoted() -> Iterator[tuple[str, str]]:
    """Yield pages and the lines with figures that must be in them."""
    singles = [
        dev(f"bees/{name}.json", *of) for name, of in zip(("M4", "M5", "M6"), OVERALL, strict=True)
    ]
    accuracies, (pearson,) = [fmean(one) for one in singles[:2]], [fmean(singles[2])]
    overall = f"{(sum(accuracies) + (pearson + 100) / 2) / 3:.1f}"
    figures = " | ".join(map(spread, singles))
    counts = [len(one) for one in singles]
    seeds = f"{counts[0]} (QQP: {counts[1]})" if counts[0] != counts[1] else f"{counts[0]}"
    yield "README.md", f"| one model per task, three epochs | {seeds} | {figures} | {overall} |"
    multi = "similarity-scale/0-5.json"
    cell = read_cell(RESULTS / multi)
    every = [100 * run["dev"]["overall"] for run in cell["seeds"].values()]
    figures = " | ".join([*(spread(dev(multi, *of)) for of in OVERALL), spread(every)])
    yield "README.md", f"450 steps per epoch | {len(every)} | {figures} |"
    minutes = sorted(run["training_seconds"] / 60 for run in cell["seeds"].values())
    yield "README.md", f"**{minutes[0]:.0f} to {minutes[-1]:.0f} minutes** of training"
    yield "README.md", f"**{spread(every)}** overall on dev (three seeds)"
    yield "README.md", f"parameters, {overall} from one model per task"


@pytest.mark.parametrize(("page", "line"), quoted())
def test_a_quoted_figure_is_that_of_its_cells(page, line):
    assert line in (ROOT / page).read_text("utf-8").replace("\n", " ")
