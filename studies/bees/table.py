"""The tables of BEES beside ours, from the cells that are finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reports.tables import beside, markdown_table, mean_and_spread
from studies.bees.rows import (
    ENSEMBLE,
    ENSEMBLE_OVERALL,
    ENSEMBLE_PAPER,
    EVERY,
    FURTHER,
    ROWS,
    TEST_PAPER,
    TOGETHER,
)
from tasks.metrics import LEADERBOARD, overall_score

Cells = Mapping[str, Mapping[str, Any]]  # NAME-seedS -> what is kept of the run
Table = tuple[list[str], list[list[str]]]
TITLES = {"sst": "SST accuracy", "qqp": "QQP accuracy", "sts": "STS Pearson"}


def seeds_of(cells: Cells, row: str) -> list[Mapping[str, Any]]:
    """What is kept of a row's finished runs, one a seed."""
    prefix = f"{row}-seed"
    return [kept for name, kept in cells.items() if name.startswith(prefix)]


def scores(cells: Cells, row: str, task: str) -> list[float]:
    """The row's main metric of a task, in per cent, one a seed."""
    return [100 * kept["dev"][task][LEADERBOARD[task]] for kept in seeds_of(cells, row)]


def both(paper: float | None, ours: Sequence[float]) -> str:
    """`51.3 / 47.1 ± 0.3`: the paper's figure and ours."""
    return beside("" if paper is None else f"{paper:.1f}", mean_and_spread(ours, 1) if ours else "")


def overall_of(values: Mapping[str, float | None]) -> float | None:
    """BEES' Eq. 6 in per cent, of figures in per cent; None unless all three are there."""
    sst, qqp, sts = (values.get(task) for task in ("sst", "qqp", "sts"))
    if sst is None or qqp is None or sts is None:
        return None
    return 100 * overall_score(sst / 100, qqp / 100, sts / 100)


def table_one(cells: Cells, ensemble: Mapping[str, Any] | None) -> Table:
    """Every row, the paper's figure before ours; the ensemble last."""
    rows = []
    for name, row in {**ROWS, **{n: r for n, r in FURTHER.items() if n.startswith("M")}}.items():
        found = {task: scores(cells, name, task) for task in row.tasks}
        shown = [both(row.paper.get(task), found[task]) if task in found else "" for task in TITLES]
        total = overall_of({t: float(np.mean(v)) if v else None for t, v in found.items()})
        shown.append(both(row.overall, [total] if total is not None else []))
        shown.append(minutes(row.minutes if row.paper else None, seeds_of(cells, name)))
        rows.append([name, row.title, *shown])
    for names, printed in TOGETHER.items():
        found = {ROWS[name].tasks[0]: scores(cells, name, ROWS[name].tasks[0]) for name in names}
        total = overall_of({t: float(np.mean(v)) if v else None for t, v in found.items()})
        pair = both(printed, [total] if total is not None else [])
        rows.append([", ".join(names), "", *[""] * len(TITLES), pair, ""])
    merged = {} if ensemble is None else ensemble["dev"]
    values = {t: 100 * merged[t][LEADERBOARD[t]] if t in merged else None for t in TITLES}
    shown = [both(ENSEMBLE_PAPER[t], [v] if v is not None else []) for t, v in values.items()]
    total = overall_of(values)
    shown.append(both(ENSEMBLE_OVERALL, [total] if total is not None else []))
    rows.append(["ensemble", "vote and mean of the models named below", *shown, ""])
    return ["model", "", *TITLES.values(), "overall", "minutes an epoch"], rows


def minutes(paper: float | None, kept: Sequence[Mapping[str, Any]]) -> str:
    """Time of an epoch, the paper's before ours, the median of runs: machines are interrupted."""
    ours = [one["training_seconds"] / one["epochs"] / 60 for one in kept]
    first = "" if paper is None else f"{paper:.1f}"
    return f"{first} / {np.median(ours):.1f}" if ours else f"{first} / " if first else ""


def further_table(cells: Cells, prefix: str, what: str) -> Table:
    """Tables 3 and 4: the rows of FURTHER whose names begin with `prefix`."""
    rows = []
    for name, row in FURTHER.items():
        if name.startswith(prefix):
            (task,) = row.tasks
            ours = scores(cells, name, task)
            rows.append([name, row.title, TITLES[task], both(row.paper[task], ours)])
    return ["model", "", "metric", what], rows


def ensemble_text(cells: Cells, ensemble: Mapping[str, Any]) -> str:
    """Where the ensemble is above the best single run there is, and where it is not."""
    parts = []
    for task, title in TITLES.items():
        metric = LEADERBOARD[task]
        single = {
            name: 100 * kept["dev"][task][metric]
            for name, kept in cells.items()
            if task in kept["dev"]
        }
        best = max(single, key=lambda name: single[name])
        merged = 100 * ensemble["dev"][task][metric]
        word = "above" if merged > single[best] else "not above"
        parts.append(f"{title} {merged:.1f}, {word} {single[best]:.1f} of {best}")
    return f"The ensemble of the first seed, beside the best single run: {'; '.join(parts)}."


def table_two(made: bool) -> Table:
    """The paper's figures on test, whose labels are not public; ours are files, once `made`."""
    row = ["paper", *(f"{TEST_PAPER[task]:.1f}" for task in TITLES)]
    ours = ["ours", *["prediction file" if made else "" for _ in TITLES]]
    return ["", *TITLES.values()], [row, ours]


def members_text() -> str:
    return "; ".join(f"{TITLES[task]}: {', '.join(names)}" for task, names in ENSEMBLE.items())


READING = (
    "Every cell: the paper's figure / ours, in per cent on dev, mean ± standard deviation over the "
    "seeds where there are several. Minutes an epoch: the paper's on a T4 with all data; ours of "
    "the median run."
)


def report(
    cells: Cells,
    ensemble: Mapping[str, Any] | None,
    command: str,
    notes: str,
    faults: str = "",
) -> str:
    """results/bees.md: command, caveats, tables; `faults` is a sentence on cells left out."""
    done = sum(bool(seeds_of(cells, name)) for name in EVERY)
    parts = [
        "# BEES, beside ours",
        f"`{command}`",
        f"{done} of {len(EVERY)} rows have a run. {READING}",
        *([faults] if faults else []),
        notes,
        "## Table 1",
        markdown_table(*table_one(cells, ensemble)),
        f"Members of the ensemble: {members_text()}.",
        *([] if ensemble is None else [ensemble_text(cells, ensemble)]),
        "## Table 2: the ensemble on test",
        markdown_table(*table_two(ensemble is not None)),
        "## Table 3: [CLS] pooling",
        markdown_table(*further_table(cells, "T3", "paper / ours")),
        "## Table 4: sigmoid",
        markdown_table(*further_table(cells, "T4", "paper / ours")),
    ]
    return "\n\n".join(parts) + "\n"
