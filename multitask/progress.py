"""How far a run is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from minbert.typed import fits


@dataclass
class Progress:
    """Counts and scores of a run; what else a resumed one needs is in `state_of`."""

    epoch: int = 0  # epochs finished
    taken: int = 0  # steps of the epoch after them
    step: int = 0
    seconds: float = 0.0  # of training, without evaluation
    examples: int = 0
    skipped: int = 0  # the last steps, whose loss or gradient was not finite
    best_score: float = float("-inf")
    best_epoch: int = 0
    statuses: dict[str, int] = field(default_factory=dict)  # of the combiner -> steps
    conflicts: dict[str, list[float]] = field(default_factory=dict)  # see telemetry
    history: list[dict[str, Any]] = field(default_factory=list)
    # Of pre-training: dev metrics of its start.
    before: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Progress:
        """What was written as JSON; TypeError for anything else."""
        for name, hint in get_type_hints(cls).items():
            if name in content and not fits(content[name], hint):
                raise TypeError(f"{name} {str(content[name])[:60]!r}")
        found = cls(**content)
        if not all({"epoch", "dev"} <= entry.keys() for entry in found.history):
            raise TypeError("a history without epochs")
        return found

    def told(self, epochs: int) -> str:
        """How far, for people."""
        return f"step {self.step:,}, epoch {self.epoch} of {epochs}"
