"""The plan of a run, for `--dry-run`."""

from __future__ import annotations

from pathlib import Path

from multitask.fingerprint import check_encoder_of_init, source_runs
from multitask.plan import batches_by_task
from multitask.run import make_trainer
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig


def dry_run_rows(config: RunConfig) -> list[list[str]]:
    """Return rows of epoch, task, examples, passes over its data, batches and steps per epoch.

    An epoch has one row for each task that it trains. No file is written and nothing is trained.
    Raise RunError if a run of `init` or `teacher` is missing or has no weights, and SettingsError
    if that of `init` has another encoder.
    """
    for run in source_runs(config).values():
        RunFolder(run).weights()
    check_encoder_of_init(config)
    trainer = make_trainer(config, Path(), ask_teachers=False)
    sizes, rows = trainer.plan.work.sizes, []
    for epoch in range(1, config.epochs + 1):
        steps = trainer.plan.steps(epoch)
        batches = batches_by_task(steps, len(sizes))
        for task, name in enumerate(trainer.tasks):
            if not batches[task]:
                continue
            examples = sum(len(trainer.streams[task].next()) for _ in range(batches[task]))
            rows.append(
                [
                    str(epoch),
                    name,
                    f"{examples:,}",
                    f"{examples / sizes[task]:.2f}",
                    f"{batches[task]:,}",
                    f"{len(steps):,}",
                ]
            )
    return [*rows, ["all", "", "", "", "", f"{trainer.total_steps:,}"]]
