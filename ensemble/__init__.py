"""Ensembles of several runs: merged predictions."""

from __future__ import annotations

from minbert_multitask import check_packages

check_packages(__name__)

from ensemble.vote import average, majority_vote

__all__ = ["average", "majority_vote"]
