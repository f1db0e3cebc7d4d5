"""The style of all figures (Matplotlib), and how they are written and put on a page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from html import escape
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from common.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
STYLE = Path(__file__).with_name("figures.mplstyle")
INK, SOFT = "#1c1f24", "#5b6470"  # text, and secondary lines and marks
# Colours that a page replaces in its dark mode, with the CSS variables of page.html.
THEMED = {INK: "ink", SOFT: "soft", "#d9dee5": "line", "#0072b2": "blue"}
FORMATS = ("svg", "pdf")
FIGURES = "figures"  # folder of the files, beside a page
MARKERS = "os^Dv"  # lines also differ without colour


def styled(draw: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function that draws or writes a figure, so that it uses the common style."""

    @wraps(draw)
    def wrapped(*args: Arguments.args, **settings: Arguments.kwargs) -> Result:
        from matplotlib import style

        with style.context(STYLE):
            return draw(*args, **settings)

    return wrapped


@styled
def blank_figure(width: float, height: float) -> Figure:
    """Return a figure without panels that needs no display; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


@styled
def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one panel; sizes in inches."""
    figure = blank_figure(width, height)
    return figure, figure.subplots()


@styled
def save_figure(figure: Figure, file: Path) -> None:
    """Write the file atomically: under a temporary name, then renamed.

    Files without a date: the same figure has the same bytes.
    """
    kind = file.suffix.removeprefix(".")
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with atomic_path(file) as new:
        figure.savefig(new, format=kind, metadata=metadata.get(kind))


@dataclass(frozen=True)
class Drawing:
    """A figure of a page, with its title for screen readers, of which its file has the name."""

    title: str
    figure: Figure

    @property
    def name(self) -> str:
        """The name of the file without ending: lower-case letters, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def save(self, page_folder: Path) -> None:
        """Write the figure in each of `FORMATS` into the folder `FIGURES` beside a page."""
        for ending in FORMATS:
            save_figure(self.figure, page_folder / FIGURES / f"{self.name}.{ending}")

    @styled
    def svg(self) -> str:
        """Return an SVG element whose colours and size follow the page's."""
        buffer = io.StringIO()
        self.figure.savefig(buffer, format="svg", metadata={"Date": None}, facecolor="none")
        text = buffer.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{self.name}-", text)
        for colour, variable in THEMED.items():
            text = text.replace(colour, f"var(--{variable})")
        return text.replace("<svg", f'<svg role="img" aria-label="{escape(self.title)}"', 1)


def heading(axis: Axes, title: str, detail: str = "") -> None:
    """Write a title above a panel and below it, softer, the detail: n, seeds, error bars."""
    lines = detail.count("\n") + 1 if detail else 0
    axis.set_title(title, pad=6 + 13 * lines)
    axis.annotate(
        detail,
        (0, 1),
        (0, 5),
        "axes fraction",
        "offset points",
        color=SOFT,
        fontsize=10,
        va="bottom",
    )


def mean_line(
    axis: Axes, points: Mapping[float, Sequence[float]], title: str, shift: float = 0.0
) -> None:
    """Plot the mean of the values at each x, with their standard deviation as error bars.

    `shift` moves the line to the right, so that the error bars of several lines stand side by side.
    """
    number = len(axis.containers)
    several = [np.asarray(values, np.float64) for values in points.values()]
    spread = [values.std(ddof=1) if len(values) > 1 else 0.0 for values in several]
    axis.errorbar(
        [x + shift for x in points],
        [values.mean() for values in several],
        np.array(spread) if any(spread) else None,
        marker=MARKERS[number % len(MARKERS)],
        label=wrapped(title),
    )


def wrapped(text: str, width: int = 40) -> str:
    """Break a long name of a system into lines."""
    return fill(text, width)
