"""What all figures share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from common.atomic_files import written_aside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def blank_figure(width: float, height: float) -> Figure:
    """A figure without panels, drawn without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with one panel."""
    figure = blank_figure(width, height)
    return figure, figure.subplots()


def save_figure(figure: Figure, file: Path) -> None:
    """Write under a temporary name, then rename: the file is never half there."""
    with written_aside(file) as new:
        figure.savefig(new, dpi=130, format=file.suffix.removeprefix("."))
