"""What `--mode reproduce` asks of a paper's study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from multitask.config import RunConfig


@dataclass(frozen=True)
class StudyRequest:
    """Which rows and seeds, with what; `results` keeps a file a cell, `runs` the folders.

    None stands for what the paper, or its study, has. With `kept_only` nothing is trained.
    """

    base: RunConfig
    results: Path
    runs: Path
    rows: tuple[str, ...] | None = None
    further: bool = False
    seeds: int | None = None
    epochs: int | None = None
    lr: float | None = None
    vectors: str | None = None
    kept_only: bool = False

    @property
    def report(self) -> Path:
        """Where the tables go, beside the folder of cells."""
        return self.results.with_name(f"{self.results.name}.md")
