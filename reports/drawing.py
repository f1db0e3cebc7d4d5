"""What all figures share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: Figure, file: Path) -> None:
    """Write under a temporary name, then rename: the file is never half there."""
    temporary = file.with_name(f"{file.stem}.tmp{file.suffix}")
    figure.savefig(temporary, dpi=130)
    temporary.replace(file)
