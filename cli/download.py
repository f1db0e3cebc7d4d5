"""Download data from the Hugging Face hub: run.py --mode download --tasks sst qqp sts --output data

The data is written as files of CS224N and GLUE, for --data; existing files are kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.settings_flags import path
from tasks import CS224N
from tasks.hub import GLUE_SIZES


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tasks",
        nargs="+",
        action="extend",
        choices=(*CS224N, "glue", *GLUE_SIZES),
        metavar="TASK",
        help=f"tasks: {', '.join(CS224N)}, {', '.join(GLUE_SIZES)}; glue for the last six "
        f"(default: {' '.join(CS224N)})",
    )
    parser.add_argument(
        "--output", type=path, default="data", metavar="DIR", help="output folder (default: data)"
    )
    parser.add_argument(
        "--source",
        type=path,
        metavar="DIR",
        help="read from disk instead of the hub: one folder of datasets' save_to_disk per task",
    )
    parser.add_argument("--revision", metavar="COMMIT", help="commit on the hub, for one task only")
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from reports.tables import text_table
    from tasks.hub import ORIGINS, fetch, to_task_splits, write
    from tasks.text_files import DataError

    names = [
        n for task in args.tasks or CS224N for n in (GLUE_SIZES if task == "glue" else (task,))
    ]
    names = list(dict.fromkeys(names))
    if args.revision and len(names) > 1:
        parser.error(f"--revision: expected one task, found {', '.join(names)}")
    if args.revision and args.source:
        parser.error("--revision and --source: expected at most one of them")
    source = Path(args.source) if args.source else None
    folder, rows, differ = Path(args.output), [], []
    for name in names:
        if (file := existing_file(name, folder)) is not None and not args.overwrite:
            print(f"{name}: skipped, {file} exists", flush=True)
            continue
        print(f"{name}: reading {source or ORIGINS[name].repo}", flush=True)
        try:
            splits = to_task_splits(name, fetch(name, source, args.revision))
            files = write(name, splits, folder)
        except DataError as error:
            raise DataError(f"{source / name if source else name}: {error}") from error
        for (split, columns), file in zip(splits.items(), files, strict=True):
            count, expected = len(next(iter(columns.values()))), ORIGINS[name].sizes[split]
            rows.append([name, split, f"{count:,}", f"{expected:,}", str(file)])
            if count != expected and not source:
                differ.append(f"{name} {split}: expected {expected:,} examples, found {count:,}")
    if rows:
        print(text_table(["task", "split", "examples", "expected", "file"], rows))
    for line in differ:
        print(line)
    return 1 if differ else 0


def existing_file(name: str, folder: Path) -> Path | None:
    """Return an existing file of a task, or None."""
    from tasks import build_task

    source = build_task(name).source
    files = [Path(source.where(folder, split)) for split in source.splits]
    return next((file for file in files if file.exists()), None)
