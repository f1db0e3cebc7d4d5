"""Data folders in the CS224N format, written into a temporary folder."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write_rows(tmp_path: Path) -> Write:
    """`write_rows(name, header, *rows)` writes a tab-separated file and returns its path."""

    def write(name: str, *rows: list[str]) -> Path:
        path = tmp_path / name
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)
        return path

    return write
