"""The task of a pre-training run, and what its text shares with data it must not have seen."""

from __future__ import annotations

from multitask.config import RunConfig
from pretrain.objectives import build_objective
from pretrain.texts import overlap
from tasks import CS224N, data_folder
from tasks.base import Task
from tasks.text_files import DataError


def build_and_check(config: RunConfig) -> dict[str, Task]:
    """Tell how much dev and test text is among the training text, then give the task."""
    tasks = build_objective(config)
    (task,) = tasks.values()
    folder = data_folder(config.data)
    texts = task.read(folder, "train", config.limit).texts
    for name in CS224N:
        try:
            (shared,) = overlap(texts, folder, [name]).values()
        except DataError as error:
            print(f"overlap with {name}: unknown ({error})", flush=True)
            continue
        found = ", ".join(f"{count:,} of {split}" for split, count in shared.items())
        print(f"sentences of {name} that the training text holds: {found}", flush=True)
    return tasks
