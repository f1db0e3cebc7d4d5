"""The plan of a run with estimated times, for `--dry-run`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from common.progress import duration
from multitask.conflict_layers import with_conflict_layers
from multitask.loop.step import StepGradient
from multitask.loop.streams import BatchStream
from multitask.run import make_trainer
from multitask.sampling import batches_by_task
from multitask.settings.config import RunConfig
from multitask.source_runs import check_encoder_of_init, check_source_weights

TIMED = 3  # timed batches of each task, after one for warm-up


def dry_run_rows(config: RunConfig) -> list[list[str]]:
    """Return rows of epoch, task, examples, passes over its data, batches, steps per epoch, time.

    An epoch has one row for each task that it trains. No file is written and no weight changes. The
    time is estimated from the gradients of a few batches, without optimiser, evaluation and
    teachers. Adapters whose layers `conflict_layers` chooses are in these. Raise RunError if a
    run of `init` or `teacher` is missing or has no weights, and SettingsError if that of `init` has
    another encoder.
    """
    check_source_weights(config)
    check_encoder_of_init(config)
    config, choice = with_conflict_layers(config)
    if choice is not None:
        print(choice, flush=True)
    trainer = make_trainer(config, Path(), ask_teachers=False)
    trainer.model.train()
    sizes, streams = trainer.plan.work.sizes, trainer.streams
    shared = [trainer.splits[name]["train"].shared for name in trainer.tasks]
    seconds = [
        seconds_per_example(trainer.gradient, stream, rows.tasks if rows else (stream.task,))
        for stream, rows in zip(streams, shared, strict=True)
    ]
    rows, whole = [], 0.0
    for epoch in range(1, config.epochs + 1):
        steps = trainer.plan.steps(epoch)
        batches = batches_by_task(steps, len(sizes))
        for task, name in enumerate(trainer.tasks):
            if not batches[task]:
                continue
            examples = sum(len(streams[task].next()) for _ in range(batches[task]))
            whole += examples * seconds[task]
            rows.append(
                [
                    str(epoch),
                    name,
                    f"{examples:,}",
                    f"{examples / sizes[task]:.2f}",
                    f"{batches[task]:,}",
                    f"{len(steps):,}",
                    duration(examples * seconds[task]),
                ]
            )
    return [*rows, ["all", "", "", "", "", f"{trainer.total_steps:,}", duration(whole)]]


def seconds_per_example(gradient: StepGradient, stream: BatchStream, tasks: Sequence[str]) -> float:
    """Return the seconds per example of the gradients of a task, and reset its stream.

    `tasks` are those with the same batches: the tasks of a table, or only this one.
    """
    elapsed, examples = 0.0, 0
    for number in range(TIMED + 1):
        rows = stream.next()
        begin = time.perf_counter()
        gradient({task: [rows] for task in tasks})
        if number:
            elapsed += time.perf_counter() - begin
            examples += len(rows) * len(tasks)
        gradient.model.zero_grad(set_to_none=True)
    stream.position = (0, 0)
    return elapsed / examples
