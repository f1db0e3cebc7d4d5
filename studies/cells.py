"""The cells of a study: training runs, each kept as one small JSON file and not run again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from common.atomic_files import write_whole
from common.errors import UserError
from common.json_files import digest, read_json, write_json
from multitask.assembly import plain_tasks
from multitask.control import RunControl
from multitask.dry_run import duration
from multitask.run import complete
from pretrain.nli import entailments
from reports.cells import cell, write_cell
from reports.leaks import audit
from reports.tables import markdown_table, text_table
from studies.cell_store import Cell, faults_of, kept_cell, stale_run
from studies.faults import left_out
from tasks import CS224N, data_folder

READING = (
    "Distinct sentences, and pairs in either order, of each held-out split that another split has "
    "too; letters and digits are compared. SimCSE reads the sentences of the training splits."
)


def run_cells(cells: Sequence[Cell], results: Path, runs: Path) -> None:
    """Bring every cell to its end that is not in `results` yet; run folders are in `runs`."""
    results.mkdir(parents=True, exist_ok=True)
    left = [one for one in cells if not kept_cell(one, results)]
    if faults := left_out(faults_of(cells, results)):
        print(faults, flush=True)
    print(
        f"{len(cells) - len(left)} of {len(cells)} cells are there, {len(left)} to run", flush=True
    )
    every = [*cells, *(one.before for one in cells if one.before is not None)]
    keep_data(every, results)
    write_leaks(every, results)
    begin = time.monotonic()
    for number, one in enumerate(left):
        more = len(left) - number
        print(f"\n{one.name}: {more} cells left{until(begin, number, more)}", flush=True)
        finish(one, results, runs)


def until(begin: float, done: int, left: int) -> str:
    """About how long what is left will take, if it is like what is done."""
    if not done:
        return ""
    seconds = (time.monotonic() - begin) / done * left
    end = datetime.now() + timedelta(seconds=seconds)
    return f", about {duration(seconds)}, until {end:%a %H:%M}"


def write_leaks(cells: Sequence[Cell], results: Path) -> None:
    """Print the leak audit of the data that these cells use, and keep it beside their files.

    Of all CS224N tasks, whichever the cells have: an encoder may come from a run of another one.
    """
    files = sorted({file for one in cells if (file := one.config.flat().get("nli"))})
    further = {Path(file).name: entailments(Path(file))[0] for file in files}
    tasks = tuple(dict.fromkeys([*CS224N, *(name for one in cells for name in one.config.tasks)]))
    *tables, damaged = audit(tasks, data_folder(cells[0].config.data), further)
    parts = zip(("sentences", "pairs"), tables, strict=True)
    shown = [(what, table) for what, table in parts if table[1]]
    for what, table in shown:
        print(f"\n{what} of dev and test that other splits hold:\n{text_table(*table)}", flush=True)
    text = "\n\n".join(f"## {what}\n\n{markdown_table(*table)}" for what, table in shown)
    left_out = "".join(f"\nNot audited: {one}\n" for one in damaged)
    print(left_out, end="", flush=True)
    write_whole(results / "leaks.md", f"# Leak audit\n\n{READING}\n\n{text}\n{left_out}")


def keep_data(cells: Sequence[Cell], results: Path) -> None:
    """Which files the cells are made from, as `data.json`: a hash of each split of each task.

    Raises UserError where other files are there than those that are kept; a cell's configuration
    names their folder without its path.
    """
    file, found = results / "data.json", dict[str, str]()
    for one in cells:
        folder = data_folder(one.config.data)
        for name, task in plain_tasks(one.config).items():
            for split in task.source.splits:
                place = Path(task.source.where(folder, split))
                if f"{name} {split}" not in found and place.is_file():
                    found[f"{name} {split}"] = digest(place)
    if not found:
        raise UserError(f"{cells[0].config.data}: expected data of the cells' tasks, found none")
    known = read_json(file, UserError) if file.exists() else {}
    for key, value in found.items():
        if known.get(key, value) != value:
            raise UserError(
                f"{file}: {key}: expected the file that the cells here were made from, found "
                f"another in {cells[0].config.data}; another --results keeps both"
            )
    if not found.keys() <= known.keys():
        write_json(file, {**known, **found})


def finish(one: Cell, results: Path, runs: Path) -> None:
    """Train a cell, going on where it was, and keep its file; a run that a fault made goes."""
    if one.before is not None:
        finish(one.before, results, runs)
    folder = runs / one.name
    again = RunControl(resume=True, overwrite=stale_run(one, folder))
    complete(one.config, folder, again)
    write_cell(results / f"{one.name}.json", cell(folder))


def write_table(results: Path, text: str) -> None:
    """Keep a study's table beside its cells."""
    results.mkdir(parents=True, exist_ok=True)
    write_whole(results / "table.md", text + "\n")


def study_parser(
    module: str, description: str | None, names: Sequence[str], limit: int
) -> argparse.ArgumentParser:
    """The flags that all studies of cells have; `python -m studies.MODULE` calls one."""
    parser = argparse.ArgumentParser(prog=f"python -m studies.{module}", description=description)
    parser.add_argument("--data", default="sample", help="folder with the CS224N files")
    parser.add_argument(
        "--limit", type=int, default=limit, help=f"training examples of a task (default: {limit})"
    )
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--results", type=Path, default=Path("results") / module)
    parser.add_argument("--runs", type=Path, default=Path("runs") / module, help="their folders")
    parser.add_argument(
        "--cells", nargs="*", choices=names, default=list(names), metavar="CELL", help="only these"
    )
    add_kept_only(parser)
    return parser


def add_kept_only(parser: argparse.ArgumentParser) -> None:
    """The flag of a study that writes its tables without training."""
    parser.add_argument(
        "--kept-only",
        action="store_true",
        help="tables of kept cells, without training",
    )
