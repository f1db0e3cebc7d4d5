"""Ensembles of several runs: merged predictions."""

from __future__ import annotations

from ensemble.vote import average, majority_vote

__all__ = ["average", "majority_vote"]
