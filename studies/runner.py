"""Training of a study's cells, and a record of the data which they use.

Several workers may share the folders: each takes the runs on which no other works.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic_files import atomic_write_text, file_lock
from common.errors import UserError
from common.json_files import digest, read_json, write_json
from common.progress import duration
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.run import complete
from multitask.run_folder import RunFolder
from multitask.telemetry import read_steps
from pretrain.texts import read_nli_triplets
from reports.cells import cell as cell_of_run
from reports.leaks import audit, leak_table
from reports.tables import markdown_table, text_table
from studies.faults import left_out_notice
from studies.results import Cell, Results, has_affected_run
from tasks import CS224N, data_folder
from tasks.base import Task
from tasks.data import read_split
from tasks.readers import Examples, limit_of

KEPT = (
    *("dev", "test", "best_epoch", "steps", "combiner_steps", "rays", "training_seconds"),
    "seconds",
)
SHORT = RunControl(resume=True, every_epoch=False)  # for hundreds of runs of a few minutes
READING = (
    "Distinct sentences, and pairs in either order, of each held-out split that another split has "
    "too; letters and digits are compared. SimCSE reads the sentences of the training splits."
)


def training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a short run; return its figures and the mean weight of each objective."""
    metrics = complete(config, folder, SHORT)
    found = {key: metrics[key] for key in KEPT if key in metrics}
    return found | {"mean_weights": mean_weights(folder), "environment": metrics["environment"]}


def long_training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run whose folder is kept; return the content of its metrics.json."""
    complete(config, folder, RunControl(resume=True))
    found = cell_of_run(folder)
    # The cell has the configuration; a command, of a run that was made by hand, has paths.
    return {key: value for key, value in found.items() if key not in ("config", "command")}


def mean_weights(folder: Path) -> dict[str, float]:
    """Return the mean weight of each objective over the steps of a run, from its telemetry."""
    weights: dict[str, list[float]] = {}
    for line in read_steps(RunFolder(folder).steps):
        for name, weight in line["weights"].items():
            weights.setdefault(name, []).append(weight)
    return {name: round(float(np.mean(several)), 4) for name, several in weights.items()}


def run_cells(
    cells: Sequence[Cell], results: Results, runs: Path, record_drawn: bool = True
) -> list[str]:
    """Complete all runs of the cells, except those whose figures are stored.

    A failed run does not stop the others; the errors are returned, one line per run.
    `record_drawn` records which examples each run drew.
    """
    for folder in (results.folder, runs):
        folder.mkdir(parents=True, exist_ok=True)
    rounds = max((len(one.seeds) for one in cells), default=0)
    every = [(one, one.seeds[k]) for k in range(rounds) for one in cells if k < len(one.seeds)]
    if record_drawn:  # cell after cell: each file is complete early
        every = [(one, seed) for one in cells for seed in one.seeds]
    left = [(one, seed) for one, seed in every if seed not in results.figures_by_seed(one)]
    print(f"{len(every) - len(left)} of {len(every)} runs are done, {len(left)} remain", flush=True)
    if faults := left_out_notice(results.faults(cells)):
        print(faults, flush=True)
    begin, busy, failed = time.monotonic(), list[tuple[Cell, int]](), list[str]()

    def attempt(one: Cell, seed: int, wait: bool) -> None:
        try:
            if not run_seed(one, seed, results, runs, record_drawn, wait=wait):
                busy.append((one, seed))
        except UserError as error:
            failed.append(f"{one.name}, seed {seed}: {error}")
            if not wait:
                print(f"{failed[-1]}; the other runs continue", flush=True)

    for number, (one, seed) in enumerate(left):
        more = len(left) - number
        remaining = remaining_time(begin, number, more)
        print(f"\n{one.name}, seed {seed}: {more} runs left{remaining}", flush=True)
        attempt(one, seed, wait=False)
    for one, seed in list(busy):  # another worker runs them; if it stops, run them here
        attempt(one, seed, wait=True)
    return failed


def remaining_time(begin: float, done: int, left: int) -> str:
    """Return the estimated remaining time, extrapolated from the finished runs."""
    if not done:
        return ""
    seconds = (time.monotonic() - begin) / done * left
    end = datetime.now() + timedelta(seconds=seconds)
    return f", about {duration(seconds)}, until {end:%a %H:%M}"


def run_seed(
    one: Cell, seed: int, results: Results, runs: Path, record_drawn: bool = True, wait: bool = True
) -> bool:
    """Train with one seed, after the runs that it needs, and store its figures.

    Return False if another worker trains it and `wait` is not set.
    """
    if seed not in results.figures_by_seed(one):
        complete_earlier_runs(one, seed, results, runs, record_drawn)
    folder = one.run_folder(seed, runs)
    with file_lock(folder, wait) as mine:
        if mine and seed not in results.figures_by_seed(one):
            run_and_store(one, seed, results, runs, record_drawn)
        return mine


def complete_earlier_runs(
    one: Cell, seed: int, results: Results, runs: Path, record_drawn: bool
) -> None:
    """Train the runs from which a run starts or learns, unless their folders are here.

    A finished folder is needed: the stored figures have no weights.
    """
    for cell, number in one.earlier_runs(seed):
        with file_lock(cell.run_folder(number, runs)):
            if results.finished_folder(cell, number, runs) is None:
                complete_earlier_runs(cell, number, results, runs, record_drawn)
                run_and_store(cell, number, results, runs, record_drawn)


def run_and_store(one: Cell, seed: int, results: Results, runs: Path, record_drawn: bool) -> None:
    """Do a cell's work with a seed and store its figures."""
    config, folder = one.run_config(seed, runs), one.run_folder(seed, runs)
    if record_drawn:
        record_examples(config, results.folder, runs)
    if one.keeps_folder and has_affected_run(one, seed, runs):
        RunFolder(folder).remove()
    results.add(one, seed, one.run_function(config, folder), runs)
    if not one.keeps_folder:
        shutil.rmtree(folder)


def write_leaks(cells: Sequence[Cell], results: Path) -> None:
    """Print the leak audit of the cells' data and write it to `leaks.md` in `results`.

    It always includes all CS224N tasks: an encoder may come from a run of another task.
    """
    files = sorted({file for one in cells if (file := one.config.flat().get("nli"))})
    further = {Path(file).name: read_nli_triplets(Path(file))[0] for file in files}
    tasks = tuple(dict.fromkeys([*CS224N, *(name for one in cells for name in one.config.tasks)]))
    *counts, damaged = audit(tasks, data_folder(cells[0].config.data), further)
    parts = zip(("sentences", "pairs"), counts, strict=True)
    found = [(what, leak_table(several)) for what, several in parts if several]
    for what, table in found:
        print(f"\n{what} of dev and test that other splits hold:\n{text_table(*table)}", flush=True)
    text = "\n\n".join(f"## {what}\n\n{markdown_table(*table)}" for what, table in found)
    unread = "".join(f"\nNot audited: {one}\n" for one in damaged)
    print(unread, end="", flush=True)
    atomic_write_text(results / "leaks.md", f"# Leak audit\n\n{READING}\n\n{text}\n{unread}")


def record_data(cells: Sequence[Cell], results: Path) -> None:
    """Write `data.json`: a hash of each file that the cells read.

    Raises UserError if a file differs from the recorded one. A cell's configuration does not show
    this, because it names the data folder without its path.
    """
    results.mkdir(parents=True, exist_ok=True)
    file, found = results / "data.json", file_digests([one.config for one in cells])
    if not found:
        raise UserError(f"{cells[0].config.data}: expected data of the cells' tasks, found none")
    mismatch = (
        "expected the file that the cells here were made from, found another in "
        f"{cells[0].config.data}; use another --results to keep both"
    )
    if (merged := record(file, found, mismatch)) is not None:
        write_json(file, merged)


def file_digests(configs: Iterable[RunConfig]) -> dict[str, str]:
    """Return a hash of the file of each task and split that the configurations read."""
    found: dict[str, str] = {}
    for config in configs:
        folder = data_folder(config.data)
        for name, task in plain_tasks(config).items():
            for split in task.source.splits:
                path = Path(task.source.where(folder, split))
                if f"{name} {split}" not in found and path.is_file():
                    found[f"{name} {split}"] = digest(path)
    return found


def record(file: Path, found: Mapping[str, str], mismatch: str) -> dict[str, str] | None:
    """Return the stored record with further entries, or None without any.

    Raises UserError with the text `mismatch` if a stored entry differs.
    """
    known = read_json(file, UserError) if file.exists() else {}
    for key, value in found.items():
        if known.get(key, value) != value:
            raise UserError(f"{file}: {key}: {mismatch}")
    return None if found.keys() <= known.keys() else {**known, **found}


def record_examples(config: RunConfig, results: Path, locks: Path) -> None:
    """Record the examples of a configuration's splits, or compare them with the recorded ones.

    Each task and protocol has a file `ids-TASK-PROTOCOL.json` with a hash of each split's texts and
    labels, and its ids. Ids of training examples are recorded only if they are drawn by number and
    seed. Raises UserError if the file has other examples.
    """
    for name, task in plain_tasks(config).items():
        drawn = {}
        for split in task.source.splits:
            key, examples = drawn_split(config, task, split)
            drawn[f"{key}, hash"] = hash_examples(examples)
            if config.protocol.counts_examples or split != "train":
                drawn[key] = " ".join(examples.ids)
        file = results / f"ids-{name}-{config.protocol.name}.json"
        with file_lock(locks / file.name):
            merged = record(file, drawn, "expected these examples, found others drawn")
            if merged is not None:
                atomic_write_text(file, json.dumps(merged, indent=2, sort_keys=True) + "\n")


def drawn_split(config: RunConfig, task: Task, split: str) -> tuple[str, Examples]:
    """Return the name of a split with the settings that determine it, and its examples."""
    key = ", ".join([split, *drawing_settings(config, task.name, split)])
    limit = {"train": limit_of(config.limit, task.name), "dev": config.dev_limit}.get(split)
    return key, read_split(task, data_folder(config.data), split, limit)


def drawing_settings(config: RunConfig, task: str, split: str) -> list[str]:
    """Return the settings, besides task and protocol, that determine a split's examples."""
    found = []
    if classes := config.task_options.get(task, {}).get("classes"):
        found.append(f"{classes} classes")
    drawn = config.protocol.values()
    if config.protocol.draws_by_seed(split):
        found += [f"{drawn['shots']}", f"seed {config.seed}"]
        if "imbalance" in drawn:
            found.append(f"ratio {drawn['imbalance']:g}")
    return found


def hash_examples(examples: Examples) -> str:
    """Return the SHA-256 of texts and labels, in order."""
    targets = [] if examples.targets is None else examples.targets.tolist()
    return hashlib.sha256(json.dumps([examples.texts, targets]).encode()).hexdigest()
