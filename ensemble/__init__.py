"""Ensembles of several runs: merged predictions."""

from ensemble.vote import average, majority_vote

__all__ = ["average", "majority_vote"]
