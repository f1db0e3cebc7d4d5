"""Smaller embeddings of one encoder: their first dimensions, and the states after earlier layers.

This module does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import EncoderError
from common.json_files import read_json, write_json

SIZES = "sizes.json"


class Size(NamedTuple):
    """The first `width` dimensions of the pooled states after `layers` layers."""

    layers: int
    width: int


@dataclass(frozen=True)
class Sizes:
    """The widths and exits (layers, from 1) that an encoder is trained for, the largest first.

    Each begins with the complete one. It is empty if only the complete one is trained.
    """

    widths: tuple[int, ...] = ()
    exits: tuple[int, ...] = ()

    def up_to(self, size: Size) -> Sizes:
        """Return those that an encoder of this size still has."""
        return Sizes(
            tuple(one for one in self.widths if one <= size.width),
            tuple(one for one in self.exits if one <= size.layers),
        )


def check_size(name: str, value: Any, most: int, of: str) -> int:
    """Return a width or a number of layers; raise EncoderError if the encoder does not have it."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise EncoderError(f"{name}: expected from 1 to {most}, the {of}, found {value!r}")
    return value


def trained_sizes(widths: Sequence[int], exits: Sequence[int], complete: Size) -> Sizes:
    """Return the sizes of a training run; the complete width and encoder are added to theirs.

    Raise EncoderError for a size that the encoder does not have.
    """
    return Sizes(
        in_order("widths", widths, complete.width, "width of the encoder"),
        in_order("exits", exits, complete.layers, "number of its layers"),
    )


def in_order(name: str, values: Sequence[int], most: int, of: str) -> tuple[int, ...]:
    """Return values and `most`, each once, the largest first; none without values."""
    checked = {check_size(name, value, most, of) for value in values}
    return tuple(sorted(checked | {most}, reverse=True)) if checked else ()


def read_sizes(folder: Path, complete: Size) -> Sizes:
    """Return the sizes that the encoder of a folder was trained for; raise EncoderError."""
    file = folder / SIZES
    if not file.exists():
        return Sizes()
    content = read_json(file)
    lists = [content.get(name, []) for name in ("widths", "exits")]
    if not all(isinstance(one, list) for one in lists):
        raise EncoderError(f"{file}: expected lists of widths and exits, found {content}")
    try:
        return trained_sizes(lists[0], lists[1], complete)
    except EncoderError as error:
        raise EncoderError(f"{file}: {error}") from error


def write_sizes(folder: Path, sizes: Sizes) -> None:
    """Write what `read_sizes` reads; no file if only the complete encoder is trained."""
    if sizes == Sizes():
        (folder / SIZES).unlink(missing_ok=True)
    else:
        write_json(folder / SIZES, asdict(sizes))
