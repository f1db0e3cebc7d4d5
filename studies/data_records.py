"""Records of the data of a study: checksums of files, the examples that runs draw, a leak audit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.errors import UserError
from common.files import atomic_write_text, file_lock, read_json_if_any, write_json
from multitask import fingerprint
from multitask.config_tasks import plain_tasks
from multitask.settings.config import RunConfig
from pretrain.texts import read_nli_triplets
from reports.leaks import audit, leak_table
from reports.tables import markdown_table, text_table
from studies.results import Cell
from tasks import CS224N, data_folder
from tasks.base import Task
from tasks.readers import Examples, limit_of

READING = (
    "Distinct sentences, and pairs in either order, of each held-out split that another split has "
    "too; letters and digits are compared. SimCSE reads the sentences of the training splits."
)


def write_leaks(cells: Sequence[Cell], results: Path) -> None:
    """Print the leak audit of the cells' data and write it to `leaks.md` in `results`.

    It always includes all CS224N tasks: an encoder may come from a run of another task.
    """
    files = sorted({file for one in cells if (file := getattr(one.config.objective, "nli", None))})
    further = {Path(file).name: read_nli_triplets(Path(file))[0] for file in files}
    tasks = tuple(dict.fromkeys([*CS224N, *(name for one in cells for name in one.config.tasks)]))
    counts, damaged = audit(tasks, data_folder(cells[0].config.data), further)
    found = [(what, leak_table(several)) for what, several in counts.items() if several]
    for what, table in found:
        print(f"\n{what} of dev and test that other splits hold:\n{text_table(*table)}", flush=True)
    text = "\n\n".join(f"## {what}\n\n{markdown_table(*table)}" for what, table in found)
    paths = {key: path for one in cells for key, path in fingerprint.files(one.config).items()}
    recorded = read_json_if_any(results / "data.json", UserError)
    gone = [key for key in recorded if key in paths and not paths[key].exists()]
    left_out = [*damaged, *(f"{key}: {paths[key]} does not exist" for key in gone)]
    unread = "".join(f"\nNot audited: {one}\n" for one in left_out)
    print(unread, end="", flush=True)
    atomic_write_text(results / "leaks.md", f"# Leak audit\n\n{READING}\n\n{text}\n{unread}")


def record_data(cells: Sequence[Cell], results: Path) -> None:
    """Write `data.json`: a hash of each file that the cells read.

    Raise UserError if a file differs from the recorded one. A cell's configuration does not show
    this, because it names the data folder without its path.
    """
    results.mkdir(parents=True, exist_ok=True)
    file, found = results / "data.json", fingerprint.file_digests(*(one.config for one in cells))
    if not found:
        raise UserError(f"{cells[0].config.data}: expected data of the cells' tasks, found none")
    mismatch = (
        "expected the file that the cells here were made from, found another in "
        f"{cells[0].config.data}; use another --results to keep both"
    )
    if (merged := record(file, found, mismatch)) is not None:
        write_json(file, merged)


def record(file: Path, found: Mapping[str, str], mismatch: str) -> dict[str, str] | None:
    """Return the stored record with further entries, or None without any.

    Raise UserError with the text `mismatch` if a stored entry differs.
    """
    known: dict[str, str] = read_json_if_any(file, UserError)
    for key, value in found.items():
        if known.get(key, value) != value:
            raise UserError(f"{file}: {key}: {mismatch}")
    return None if found.keys() <= known.keys() else {**known, **found}


def record_examples(config: RunConfig, results: Path, locks: Path) -> None:
    """Record the examples of a configuration's splits, or compare them with the recorded ones.

    Each task and protocol has a file `ids-TASK-PROTOCOL.json` with a hash of each split's texts and
    labels, and its ids. Ids of training examples are recorded only if they are drawn by number and
    seed. Raise UserError if the file has other examples.
    """
    for name, task in plain_tasks(config).items():
        drawn = {}
        for split in task.source.splits:
            key, examples = drawn_split(config, task, split)
            drawn[f"{key}, hash"] = hash_examples(examples)
            if config.protocol.draws or split != "train":
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
    return key, task.read(data_folder(config.data), split, limit)


def drawing_settings(config: RunConfig, task: str, split: str) -> list[str]:
    """Return the settings, besides task and protocol, that determine a split's examples."""
    found = []
    if classes := config.tasks[task].outputs.get("classes"):
        found.append(f"{classes} classes")
    drawn = config.protocol.to_json()
    if split in config.protocol.draws:
        found += [f"{drawn['shots']}", f"seed {config.seed}"]
        if "imbalance" in drawn:
            found.append(f"ratio {drawn['imbalance']:g}")
    return found


def hash_examples(examples: Examples) -> str:
    """Return the SHA-256 of texts and labels, in order."""
    targets = [] if examples.targets is None else examples.targets.tolist()
    return hashlib.sha256(json.dumps([examples.texts, targets]).encode()).hexdigest()
