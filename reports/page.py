"""A comparison as one HTML page: tables, figures, examples; no file or network beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reports.comparison_tables import NOTES, Sections
from reports.disagreements import disagreements
from reports.figures import all_figures, svg
from reports.system_scores import Scored, tasks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATE = Path(__file__).with_name("page.html")


def comparison_page(
    systems: Sequence[Scored],
    tables: Sections,
    further: Mapping[str, Sequence[Figure]] | None = None,
) -> str:
    """The page's text; `further` figures, by title, follow those that every comparison has.

    Whatever stands in data, names of runs and settings is escaped.
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
        # Our own drawings are markup; their texts were escaped when they were drawn.
        figures=[
            (title, [Markup(svg(figure, title, i)) for i, figure in enumerate(several)])
            for title, several in figures.items()
        ],
        disagreements=examples,
    )
