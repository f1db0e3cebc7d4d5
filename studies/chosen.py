"""Which cells of a study are run: those whose data is there."""

from __future__ import annotations

from pathlib import Path

from minbert.errors import UserError
from studies.seeds import SeedCell
from tasks import build_task, data_folder


def there(cells: list[SeedCell]) -> list[SeedCell]:
    """Those whose data is there; absent tasks are told."""
    absent = set()
    for name in dict.fromkeys(task for one in cells for task in one.config.tasks):
        source, folder = build_task(name).source, data_folder(cells[0].config.data)
        files = [Path(source.where(folder, split)) for split in source.splits]
        for file in files:
            if not file.exists() and name not in absent:
                print(f"{name} is left out, for there is no {file}", flush=True)
                absent.add(name)
    found = [one for one in cells if not absent & set(one.config.tasks)]
    if not found:
        raise UserError(f"{cells[0].config.data}: expected data of a task asked for, found none")
    return found
