"""Comparisons of two configurations that train seed by seed until the difference is settled."""

from studies.until_sure.comparison import compare_until_sure, sentence

__all__ = ["compare_until_sure", "sentence"]
