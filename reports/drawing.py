"""Functions that all figures use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from common.atomic_files import written_aside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def blank_figure(width: float, height: float) -> Figure:
    """Return a figure without panels that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one panel."""
    figure = blank_figure(width, height)
    return figure, figure.subplots()


def save_figure(figure: Figure, file: Path) -> None:
    """Write the file atomically: under a temporary name, then renamed."""
    with written_aside(file) as new:
        figure.savefig(new, dpi=130, format=file.suffix.removeprefix("."))
