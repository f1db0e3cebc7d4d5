"""A comparison as one HTML page: tables, figures, and examples on which systems disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common.errors import UserError
from ensemble.alignment import aligned
from reports.comparison_tables import NOTES, Sections
from reports.figures import all_figures, svg
from reports.systems import Scored, tasks_of
from tasks import data_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SHOWN = 8  # examples per task


@dataclass(frozen=True)
class Disagreement:
    """One example: its texts, its label, and the prediction of each system."""

    texts: tuple[str, ...]
    label: str
    said: tuple[str, ...]


def disagreements(
    systems: Sequence[Scored], task: str, count: int = SHOWN
) -> list[Disagreement] | None:
    """Return examples on which systems predict other classes, or other similarities (2 decimals).

    They are sorted by the largest distance between two systems' probabilities (total variation)
    or similarities, from the first seed of each. Returns None if fewer than two systems have the
    task, or if the data of the runs cannot be found.
    """
    having = [one for one in systems if task in one.metrics]
    if len(having) < 2:
        return None
    known = [run.config.get("data") for one in having for run in one.system.runs]
    data = next((one for one in known if one is not None), None)  # merged runs record none
    if data is None:
        return None
    try:
        examples = having[0].system.task(task).read(data_folder(str(data)), "dev")
    except (UserError, OSError):
        return None
    row_of = {one: row for row, one in enumerate(examples.ids)}
    table = aligned(
        {str(i): one.scores[task, one.system.seeds(task)[0]] for i, one in enumerate(having)},
        having[0].system.task(task).kind.predictions,
    )
    assert table.targets is not None
    similarities = table.values.ndim == 2
    distance = np.max([apart(*pair) for pair in combinations(table.values, 2)], axis=0)
    found: list[Disagreement] = []
    for row in np.lexsort((table.ids, -distance)):
        if (place := row_of.get(str(table.ids[row]))) is None:
            return None  # the data is not that of the runs
        said = table.predictions[:, row]
        shown = tuple(f"{value:z.2f}" if similarities else f"{value:.0f}" for value in said)
        if len(set(shown)) > 1:  # probabilities may differ although the class is the same
            texts = tuple(column[place] for column in examples.texts)
            found.append(Disagreement(texts, f"{table.targets[row]:g}", shown))
        if len(found) == count:
            break
    return found


def apart(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return distances (N,) of similarities (N,), or total variation of probabilities (N, C)."""
    distance = np.abs(values.astype(np.float64) - others)
    return distance if distance.ndim == 1 else distance.sum(1) / 2


TEMPLATE = Path(__file__).with_name("page.html")


def comparison_page(
    systems: Sequence[Scored],
    tables: Sections,
    further: Mapping[str, Sequence[Figure]] | None = None,
) -> str:
    """Return the HTML text; `further` figures by title follow those of every comparison.

    Text from data, names of runs and settings is escaped.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    figures = {**all_figures(systems), **(further or {})}
    examples = []
    for task in tasks_of(systems):
        if (found := disagreements(systems, task)) is not None:
            names = [one.system.name for one in systems if task in one.metrics]
            examples.append((task, names, found))
    runs = sum(len(one.system.runs) for one in systems)
    template = Environment(autoescape=True, trim_blocks=True).from_string(TEMPLATE.read_text())
    return template.render(
        title="Comparison: " + " | ".join(one.system.name for one in systems),
        summary=f"{len(systems)} systems, {runs} runs; scores on dev, which chose the best epochs.",
        tables=[(title, *table) for title, table in tables],
        notes=NOTES,
        # The figures are markup; their texts were escaped when they were drawn.
        figures=[
            (title, [Markup(svg(figure, title, i)) for i, figure in enumerate(several)])
            for title, several in figures.items()
        ],
        disagreements=examples,
    )
