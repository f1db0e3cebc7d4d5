"""Vectors of words from a file in GloVe's format."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from common.atomic_files import check_regular
from common.errors import EncoderError

PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")  # how gzip, zip, bzip2 and xz begin
BOM = b"\xef\xbb\xbf"


def read_vectors(file: Path, words: Iterable[str]) -> dict[str, np.ndarray]:
    """Vectors of these words: a word and its numbers, a line each, all as many as the first has.

    The file is mapped, not read into memory, and only the lines of wanted words are parsed. A first
    line of two numbers, as word2vec's format has it, is passed over, and so is what stands for
    several words; of a word that comes twice the first vector counts. EncoderError names the line
    of what is no vector, or has another width.
    """
    wanted = {word.encode(): word for word in words}
    found: dict[str, np.ndarray] = {}
    check_regular(file, EncoderError)
    try:
        with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as m:
            if m[:6].startswith(PACKED):
                raise EncoderError(f"{file}: expected word vectors as text, found a packed file")
            width: int | None = None
            for number, line in enumerate(iter(m.readline, b""), 1):
                line = line.removeprefix(BOM) if number == 1 else line
                word, *rest = line.split(None, 1) or [b""]
                if width is None and rest:
                    if number == 1 and rest[0].strip().isdigit():
                        continue
                    width = len(rest[0].split())
                if word in wanted and wanted[word] not in found:
                    fields = rest[0].split() if rest else []
                    vector = vector_of(fields, width or 1, f"{file}, line {number}")
                    if vector is not None:
                        found[wanted[word]] = vector
    except (OSError, ValueError) as error:  # mmap refuses an empty file by ValueError
        if isinstance(error, EncoderError):
            raise
        raise EncoderError(f"{file}: expected word vectors, found: {error}") from error
    if not found:
        raise EncoderError(f"{file}: expected vectors of some of the words, found none")
    return found


def vector_of(fields: list[bytes], width: int, where: str) -> np.ndarray | None:
    """The numbers of a line; None where more than one word stands before them."""
    numbers = [number_of(field) for field in fields]
    if None in numbers[:-width]:
        return None  # glove.840B has some
    vector = np.array([np.nan if number is None else number for number in numbers], np.float32)
    if not len(vector) or not np.isfinite(vector).all():
        shown = b" ".join(fields)[:40].decode(errors="replace")
        raise EncoderError(f"{where}: expected a word and its numbers, found {shown!r}")
    if len(vector) != width:
        raise EncoderError(f"{where}: expected {width} numbers, found {len(vector)}")
    return vector


def number_of(field: bytes) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
