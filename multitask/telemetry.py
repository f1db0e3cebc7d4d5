"""What a run shows while it goes on: TensorBoard scalars, and a bar while it scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Scalars:
    """TensorBoard scalars, its slow import put off until the first figure is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None
        self._purge: int | None = None

    def forget_after(self, step: int) -> None:
        """Let the points after `step`, of a run that is resumed there, no longer be shown."""
        self._purge = step + 1

    def write(self, figures: Mapping[str, float], step: int) -> None:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self.folder), purge_step=self._purge)
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def scoring_bar(task: str, examples: int) -> Any:
    """A bar that goes away when done; none in a log."""
    from tqdm import tqdm

    return tqdm(total=examples, desc=f"score {task}", unit="ex", leave=False, disable=None)
