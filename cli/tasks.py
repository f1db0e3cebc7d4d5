"""List the built-in tasks and their examples: run.py --mode tasks --data DIR

With --data-file, the columns of your file are listed instead, and the tasks of --labels.
"""

import argparse
from pathlib import Path
from textwrap import shorten

from cli.flags import Parser
from cli.training import add_table, table_of
from common.errors import UserError, counted, one_line
from tasks import SAMPLE, TASK_NAMES, build_task, data_folder
from tasks.csv_files import Layout
from tasks.own_task import FILES, files_in
from tasks.own_tasks import layout_keys
from tasks.own_types import looks_like
from tasks.tables import read_table, shown


def add_flags(parser: Parser) -> None:
    parser.add_settings(("data",))
    add_table(parser)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from reports.tables import text_table
    from tasks.splits import doubts, existing_files, reading_notices

    if args.data_file:
        file, rows = Path(files_in(args.data_file)["train"]), list[list[str]]()
        table = read_table(file, Layout(**layout_keys(args.table)))
        for name in table.columns:
            cells = [shown(row.get(name)).strip() for _, row in table.rows]
            first = [shorten(one, 28, placeholder=" ...") for one in [*cells, "", "", ""][:3]]
            if table.has_commas(name):
                cells = [one.replace(",", ".") for one in cells]
            rows.append([name, looks_like(cells), *first, f"{sum(map(bool, cells)):,}"])
        header = ["column", "looks like", "row 1", "row 2", "row 3", "cells"]
        print(f"{file}: {counted(len(table.rows), 'row')}\n\n{text_table(header, rows)}\n")
        if not args.labels:
            print("To make tasks of these columns, add --text COLUMN --labels COLUMN ...")
            return 0
    folder, own = data_folder(args.data or SAMPLE), {one.name: one for one in table_of(args)}
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; --data needs the folder of the data files")
    rows, lines, status = [], [] if own else [f"examples found in {folder}"], 0
    for task in [one.build() for one in own.values()] or map(build_task, TASK_NAMES):
        try:
            here = existing_files(task.source, folder)
            found = {split: task.read(folder, split) for split in here}
            about = [*own[task.name].lines(), *reading_notices(task, folder, found)] if own else []
            about += doubts(task, found) if own else []
        except UserError as error:
            found, about, status = {}, [f"cannot be read: {error}"], 1
        what = "classes" if task.kind.classes else "labels"
        kind = f"{task.kind.columns} {what}" if task.kind.columns else "numbers"
        counts = [f"{len(found[split]):,}" if split in found else "" for split in FILES]
        rows.append([task.name, f"{kind} of {'pairs' if task.texts == 2 else 'texts'}", *counts])
        lines += [one_line(f"{task.name}: {line}") for line in about]
    print(text_table(["task", "predicts", *FILES], rows), "", *lines, sep="\n")
    return status
