"""A comparison as one HTML page that needs no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from reports.comparison import Comparison, verdicts
from reports.comparison_tables import NOTES, class_section, sections
from reports.examples import example_section

TEMPLATE = Path(__file__).with_name("page.html")


def comparison_page(found: Comparison, figures: Sequence[Path]) -> str:
    """Return the HTML text with SVG files; text from data, names and settings is escaped."""
    from jinja2 import Environment

    tables = sections(found)
    for make in (class_section, lambda one: example_section(one, found.systems)):
        tables += [table for one in found.tasks.values() if (table := make(one)).table[1]]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text("utf-8")).render(
        names=[one.name for one in found.systems],
        verdicts=verdicts(found),
        tables=tables,
        notes=NOTES,
        figures={file.stem: b64encode(file.read_bytes()).decode() for file in figures},
    )
