"""What `--mode predict` reads: texts, one or two a row, and their labels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path


def rows_of(args: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The texts, one or two a row."""
    from tasks.text_files import READERS, DataError, decoded, decoded_lines

    if args.input is None:
        if sys.stdin is None:
            raise DataError("standard input: expected a text a line, found it closed")
        for number, line in decoded(sys.stdin.buffer, "standard input"):
            texts = tuple(line.rstrip("\r\n").split("\t"))
            if len(texts) > 2:
                raise DataError(
                    f"standard input, line {number}: expected one text, or two with a tab between "
                    f"them, found {len(texts)}"
                )
            yield texts
        return
    file = Path(args.input)
    if args.column:
        needed = [*args.column, args.glue] if args.glue else args.column
        for _, row in named_rows(args, needed):
            yield tuple(row[name] for name in args.column)
    elif file.suffix.lower() in READERS:
        raise DataError(f"{file}: expected --column with the name of its text, found none")
    else:
        for _, line in decoded_lines(file):
            yield (line.rstrip("\r\n"),)


def version_of(args: argparse.Namespace) -> tuple[tuple[int, int], ...]:
    """Size and time of the input, or of each file of a folder; nothing of standard input."""
    if args.input is None:
        return ()
    source = Path(args.input)
    try:
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        found = [file.stat() for file in files]
    except OSError:  # it is not there: whoever reads it reports that
        return ()
    return tuple((one.st_size, one.st_mtime_ns) for one in found)


def check_unchanged(args: argparse.Namespace, version: tuple[tuple[int, int], ...]) -> None:
    """DataError where the input is not what it was: rows, labels and indices are read apart."""
    from tasks.text_files import DataError

    if version_of(args) != version:
        raise DataError(f"{args.input}: expected the same file to the end, found it changed")


def labels_of(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Each row's place and label."""
    for line, row in named_rows(args, [args.label]):
        yield f"{args.input}, line {line}: {args.label}", row[args.label]


def indices_of(args: argparse.Namespace) -> Iterator[str]:
    """Of each row of a test file, as GLUE has it."""
    from tasks.text_files import DataError

    known = set()
    for line, row in named_rows(args, [args.glue]):
        index = row[args.glue].strip()
        if not index.isdecimal() or index in known:
            raise DataError(
                f"{args.input}, line {line}: {args.glue}: expected a whole number of its own, "
                f"found {index!r}"
            )
        known.add(index)
        yield index


def named_rows(args: argparse.Namespace, names: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The columns of these names, each row after its line."""
    from tasks.text_files import rows_by_name

    file = Path(args.input)
    comma = file.suffix.lower() == ".csv"
    quoted = args.quotes != "no" and not args.glue
    return rows_by_name(file, names, comma, quoted_tabs=quoted)
