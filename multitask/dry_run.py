"""The plan of a run, for `--dry-run`."""

from __future__ import annotations

from pathlib import Path

from multitask.plan import batches_by_task
from multitask.run import make_trainer
from multitask.settings.config import RunConfig


def dry_run_rows(config: RunConfig) -> list[list[str]]:
    """Return rows of epoch, task, examples, passes over its data, batches and steps per epoch.

    An epoch has one row for each task that it trains. No file is written and nothing is trained.
    """
    trainer = make_trainer(config.changed(teacher=(), regularizers=()), Path())
    sizes, names, rows = trainer.plan.work.sizes, [*trainer.tasks], []
    for epoch in range(1, config.epochs + 1):
        steps = trainer.plan.steps(epoch)
        for task, count in enumerate(batches_by_task(steps, len(sizes)).tolist()):
            if count:
                examples = sum(len(trainer.streams[task].next()) for _ in range(count))
                passes, of_steps = f"{examples / sizes[task]:.2f}", f"{len(steps):,}"
                name = names[task]
                rows.append([str(epoch), name, f"{examples:,}", passes, f"{count:,}", of_steps])
    return [*rows, ["all", "", "", "", "", f"{trainer.total_steps:,}"]]
