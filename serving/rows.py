"""A file of sentences as a list."""

from __future__ import annotations

from pathlib import Path

from common.errors import UserError
from serving.empty_texts import is_empty
from tasks.tables import read_sentences


def read_sentence_list(file: Path, column: str | None = None) -> list[str]:
    """Return all sentences of a file, in order; raise UserError if there are only empty ones."""
    found = list(read_sentences(file, column))
    if all(map(is_empty, found)):
        what = "only empty ones" if found else "none"
        raise UserError(f"{file}: expected at least one sentence, found {what}")
    return found
