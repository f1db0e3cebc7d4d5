"""Ensembles of several runs: merged predictions or averaged weights."""

from __future__ import annotations

from ensemble.average import average
from ensemble.vote import majority_vote

__all__ = ["average", "majority_vote"]
