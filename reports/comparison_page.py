"""A comparison as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reports.class_tables import class_tables
from reports.comparison import Comparison
from reports.comparison_tables import NOTES, sections
from reports.disagreements import disagreements
from reports.figures import FIGURES, Drawing
from reports.scored_systems import first_task, systems_with, tasks_of
from reports.tables import Section
from reports.verdict import verdicts

TEMPLATE = Path(__file__).with_name("page.html")
LEFT_OUT = (
    " Examples on which the systems disagree are left out for {}: the dev file is not here, or is "
    "not that of the runs."
)


def class_sections(comparison: Comparison) -> Iterator[Section]:
    """Yield a table of precision, recall and F1 by class for each task with classes or labels."""
    for task in tasks_of(comparison.systems):
        if (table := class_tables(comparison.systems, task)) is not None:
            yield Section(f"Classes of {task}: precision, recall and F1", table)


def comparison_page(comparison: Comparison, drawings: Mapping[str, Sequence[Drawing]]) -> str:
    """Return the HTML text with drawings by title of their section.

    Text from data, names of runs and settings is escaped.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    systems = comparison.systems
    examples, left_out = [], []
    for task in tasks_of(systems):
        names = [one.system.name for one in systems_with(systems, task)]
        if (found := disagreements(systems, task)) is None:
            left_out += [task] * (len(names) > 1)
        else:
            similar = first_task(systems, task).kind.columns is None
            examples.append((f"Disagreements on {task}", names, found, similar))
    runs = sum(len(one.system.runs) for one in systems)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    # The figures are markup; their texts were escaped when they were drawn.
    figures = [
        (name, [(one.name, Markup(one.svg())) for one in several])
        for name, several in drawings.items()
    ]
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    return template.render(
        names=[one.system.name for one in systems],
        summary=f"{len(systems)} systems, {runs} runs; scores on dev, which chose the best epochs.",
        verdicts=verdicts(comparison),
        tables=[*sections(comparison), *class_sections(comparison)],
        notes=NOTES + (LEFT_OUT.format(", ".join(left_out)) if left_out else ""),
        disagreements=examples,
        figures=figures,
        folder=FIGURES,
    )
