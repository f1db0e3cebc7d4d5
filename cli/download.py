"""Download data from the Hugging Face hub: run.py --mode download --tasks sst qqp sts --output data

The files have the formats of CS224N and GLUE. Give their folder to --data. Existing files are kept.
"""

import argparse
from pathlib import Path

from cli.flags import SEVERAL, Parser, path
from tasks import CS224N, build_task
from tasks.hub import ORIGINS, fetch, write
from tasks.splits import existing_files


def add_flags(parser: Parser) -> None:
    add = parser.add_argument
    text = f"tasks: {', '.join(ORIGINS)}; glue for the last six (default: {' '.join(CS224N)})"
    add("--tasks", choices=(*ORIGINS, "glue"), metavar="TASK", help=text, **SEVERAL)
    text = "output folder (default: data)"
    add("--output", type=path, default="data", metavar="DIR", help=text)
    text = "read from disk, not the hub: one folder per task, written by datasets' save_to_disk"
    add("--source", type=path, metavar="DIR", help=text)
    add("--overwrite", action="store_true", help="replace existing files")


def main(args: argparse.Namespace, parser: Parser) -> int:
    from reports.tables import text_table

    glue = [name for name in ORIGINS if name not in CS224N]
    names = [n for task in args.tasks or CS224N for n in (glue if task == "glue" else (task,))]
    source = Path(args.source) if args.source else None
    folder, rows = Path(args.output), []
    for name in dict.fromkeys(names):
        here = [*existing_files(build_task(name).source, folder).values()]
        if here and not args.overwrite:
            print(f"{name}: skipped, {here[0]} exists", flush=True)
            continue
        print(f"{name}: reading {source or ORIGINS[name]['repo']}", flush=True)
        splits = fetch(name, source)
        for (split, found), file in zip(splits.items(), write(name, splits, folder), strict=True):
            sizes = f"{len(found):,}", f"{ORIGINS[name]['sizes'][split]:,}"
            rows.append([name, split, *sizes, str(file)])
    if rows:
        print(text_table(["task", "split", "examples", "expected", "file"], rows))
    return 0
