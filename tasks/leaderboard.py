"""Prediction files as the leaderboard takes them: checked byte by byte, and scored offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.predictions import PredictionFile

SHOWN = 5  # problems of one kind that are told with their line


@dataclass(frozen=True)
class Checked:
    """What is wrong with a prediction file; if nothing, its values (N,) in the order asked for."""

    file: Path
    rows: int
    problems: tuple[str, ...]
    values: np.ndarray | None


def check_predictions(file: Path, output: PredictionFile, ids: Sequence[str]) -> Checked:
    """Whether a file holds the header's bytes and one well-formed row for each of `ids`, no other.

    Each problem is one line that names file and line.
    """
    if not file.is_file():
        return Checked(file, 0, (f"{file}: expected a prediction file, found none",), None)
    header, *lines = file.read_bytes().split(b"\n")
    problems = Problems(file)
    expected = output.header.encode()
    if header != expected:
        problems.add(1, f"expected the header {expected!r}, found {header[:80]!r}")
    if lines and lines[-1] == b"":
        lines.pop()
    else:
        problems.add(len(lines) + 1, "expected a line break at the end of the last row, found none")
    wanted, found = set(ids), dict[str, float]()
    for number, line in enumerate(lines, 2):
        try:
            name, text = split_row(line)
            if name in found:
                raise ValueError(f"expected each id once, found {name} again")
            if name not in wanted:
                raise ValueError(f"expected an id of the data, found {name}")
            found[name] = 0.0  # it is there, whatever its value
            found[name] = output.parse(text)
        except ValueError as error:
            problems.add(number, str(error))
    missing = [one for one in ids if one not in found]
    if missing:
        problems.add(None, f"expected {len(ids)} ids, lacks {len(missing)}, such as {missing[0]}")
    told = problems.told()
    values = None if told else np.array([found[one] for one in ids])
    return Checked(file, len(lines), told, values)


def split_row(line: bytes) -> tuple[str, str]:
    """`ID , VALUE ` -> id and value; ValueError says what is wrong."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"expected UTF-8, found {line[:40]!r}") from None
    name, comma, rest = text.partition(" , ")
    if not (comma and name and rest.endswith(" ")) or name != name.strip() or "\r" in text:
        raise ValueError(f"expected 'ID , VALUE ', found {text[:80]!r}")
    return name, rest[:-1]


class Problems:
    """Problems of a file; beyond the first few they are only counted."""

    def __init__(self, file: Path) -> None:
        self.file, self.found = file, list[str]()

    def add(self, line: int | None, text: str) -> None:
        where = f"{self.file}" if line is None else f"{self.file}, line {line}"
        self.found.append(f"{where}: {text}")

    def told(self) -> tuple[str, ...]:
        more = len(self.found) - SHOWN
        rest = [f"{self.file}: and {more} more"] if more > 0 else []
        return (*self.found[:SHOWN], *rest)
