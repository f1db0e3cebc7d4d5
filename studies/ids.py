"""Which examples a study drew, written down: a repetition that would draw others is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minbert.errors import UserError
from minbert.files import alone, write_whole
from minbert.json_files import read_json
from multitask.assembly import build_tasks
from multitask.config import RunConfig
from tasks import data_folder


def keep_ids(config: RunConfig, results: Path, locks: Path) -> None:
    """Write the ids of a configuration's dev, test and few training examples, or compare them.

    One file a task and protocol, `ids-TASK-PROTOCOL.json`; lines of ids, training examples by their
    number and seed. Raises UserError where the file has others.
    """
    folder = data_folder(config.data)
    for name, task in build_tasks(config).items():
        drawn: dict[str, Any] = {
            split: " ".join(task.read(folder, split).ids) for split in ("dev", "test")
        }
        if config.protocol == "few-shot":
            drawn[f"train, {config.shots}, seed {config.seed}"] = " ".join(
                task.read(folder, "train").ids
            )
        file = results / f"ids-{name}-{config.protocol}.json"
        with alone(locks / file.name):
            known = read_json(file, UserError) if file.exists() else {}
            for key, ids in drawn.items():
                if known.get(key, ids) != ids:
                    raise UserError(f"{file}: {key}: expected these examples, found others drawn")
            if not drawn.keys() <= known.keys():
                write_whole(file, as_lines({**known, **drawn}))


def as_lines(content: dict[str, str]) -> str:
    """JSON with a line a key, so that what is added shows."""
    lines = (f"  {json.dumps(key)}: {json.dumps(content[key])}" for key in sorted(content))
    return "{\n" + ",\n".join(lines) + "\n}\n"
