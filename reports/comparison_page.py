"""A comparison as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reports.comparison import Comparison, verdicts
from reports.comparison_tables import NOTES, sections
from reports.examples import telling_examples
from reports.figures import FIGURES, Drawing

TEMPLATE = Path(__file__).with_name("page.html")


def comparison_page(found: Comparison, drawings: Mapping[str, Sequence[Drawing]]) -> str:
    """Return the HTML text with drawings by title of their section.

    Text from data, names of runs and settings is escaped.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    examples, left_out = [], []
    for task, one in found.tasks.items():
        if (several := telling_examples(one, found.systems)) is None:
            left_out.append(task)
        else:
            what = "Disagreements on" if len(one.systems) > 1 else "Largest errors on"
            examples.append((f"{what} {task}", one.systems, several))
    gone = f" Examples of {', '.join(left_out)} are left out: the dev file is not here, or is not "
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    # The figures are markup; their texts were escaped when they were drawn.
    figures = [
        (name, [(one.name, Markup(one.svg())) for one in several])
        for name, several in drawings.items()
    ]
    return environment.from_string(TEMPLATE.read_text("utf-8")).render(
        names=[one.name for one in found.systems],
        verdicts=verdicts(found),
        tables=sections(found, classes=True),
        notes=NOTES + (f"{gone}that of the runs." if left_out else ""),
        examples=examples,
        figures=figures,
        folder=FIGURES,
    )
