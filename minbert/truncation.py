"""Reports of texts that are longer than an encoder's limit. No torch is imported here."""

from __future__ import annotations

import warnings

from common.errors import TruncationWarning


def truncation(cut: int, total: int, texts: str, max_tokens: int) -> str:
    """`12 of 8,544 train texts are longer than 256 tokens and were cut`."""
    longer, were = ("is", "was") if cut == 1 else ("are", "were")
    return f"{cut:,} of {total:,} {texts} {longer} longer than {max_tokens} tokens and {were} cut"


def warn_of_truncation(cut: int, total: int, texts: str, max_tokens: int) -> None:
    """Warn the caller's caller where any were cut."""
    if cut:
        warnings.warn(truncation(cut, total, texts, max_tokens), TruncationWarning, stacklevel=3)
