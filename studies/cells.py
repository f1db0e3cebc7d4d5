"""The cells of a study: training runs, each kept as one small JSON file and not run again."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minbert.errors import UserError
from minbert.json_files import read_json, write_json
from multitask.config import RunConfig
from multitask.run import complete
from pretrain.objectives import tasks_of
from reports.cells import cell, kept_cell


@dataclass(frozen=True)
class Cell:
    """One run, and another that has to be finished `before` because it starts from it."""

    name: str
    config: RunConfig
    before: Cell | None = None


def run_cells(cells: Sequence[Cell], results: Path, runs: Path) -> None:
    """Bring every cell to its end that has no file in `results` yet; run folders are in `runs`."""
    results.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(cells, 1):
        if not kept_cell(results / f"{one.name}.json", one.config):
            print(f"\n{one.name}: cell {number} of {len(cells)}", flush=True)
            finish(one, results, runs)


def finish(one: Cell, results: Path, runs: Path) -> None:
    """Train a cell, going on where it was, and keep its file."""
    if one.before is not None:
        finish(one.before, results, runs)
    complete(one.config, runs / one.name, resume=True, make_tasks=tasks_of)
    write_json(results / f"{one.name}.json", cell(runs / one.name))


def read_cells(results: Path, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """The finished ones among these cells, by name, in their order."""
    files = {name: results / f"{name}.json" for name in names}
    return {name: read_json(file, UserError) for name, file in files.items() if file.exists()}


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
    return parser
