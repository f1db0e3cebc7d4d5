"""Which examples a study drew, written down: a repetition that would draw others is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from common.atomic_files import alone, write_whole
from common.errors import UserError
from common.json_files import read_json
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from tasks import data_folder
from tasks.data import read_split
from tasks.readers import Examples, limit_of


def keep_ids(config: RunConfig, results: Path, locks: Path) -> None:
    """Write the examples of a configuration's splits, or compare them with what was written.

    One file a task and protocol, `ids-TASK-PROTOCOL.json`: a hash of each split's texts and labels,
    and its ids; of training examples only where they are drawn by number and seed. Raises UserError
    where the file has others.
    """
    folder = data_folder(config.data)
    for name, task in plain_tasks(config).items():
        few = config.protocol.counts_examples
        drawn = {}
        for split in ("dev", "test", "train"):
            key = ", ".join([split, *drawn_by(config, name, split)])
            limit = {"train": limit_of(config.limit, name), "dev": config.dev_limit}.get(split)
            examples = read_split(task, folder, split, limit)
            drawn[f"{key}, hash"] = digest(examples)
            if few or split != "train":
                drawn[key] = " ".join(examples.ids)
        file = results / f"ids-{name}-{config.protocol.name}.json"
        with alone(locks / file.name):
            known = read_json(file, UserError) if file.exists() else {}
            for key, value in drawn.items():
                if known.get(key, value) != value:
                    raise UserError(f"{file}: {key}: expected these examples, found others drawn")
            if not drawn.keys() <= known.keys():
                write_whole(file, as_lines({**known, **drawn}))


def drawn_by(config: RunConfig, task: str, split: str) -> list[str]:
    """What decides which examples a split has, beside task and protocol."""
    found = []
    if classes := config.task_options.get(task, {}).get("classes"):
        found.append(f"{classes} classes")
    # Few-shot parts the dev file by itself; the other protocols draw dev from train.
    drawn = config.protocol.values()
    if config.protocol.counts_examples and split != "test":
        if config.protocol.name != "few-shot" or split == "train":
            found += [f"{drawn['shots']}", f"seed {config.seed}"]
        if "imbalance" in drawn:
            found.append(f"ratio {drawn['imbalance']:g}")
    return found


def digest(examples: Examples) -> str:
    """SHA-256 of texts and labels, in their order."""
    targets = [] if examples.targets is None else examples.targets.tolist()
    return hashlib.sha256(json.dumps([examples.texts, targets]).encode()).hexdigest()


def as_lines(content: dict[str, str]) -> str:
    """JSON with a line a key, so that what is added shows."""
    lines = (f"  {json.dumps(key)}: {json.dumps(content[key])}" for key in sorted(content))
    return "{\n" + ",\n".join(lines) + "\n}\n"
