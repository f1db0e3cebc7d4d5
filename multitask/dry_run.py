"""What a configuration would do: counted from its plan, timed on a few batches of each task."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from multitask.config import RunConfig
from multitask.run import make_trainer
from multitask.step import StepGradient
from multitask.streams import BatchStream

TIMED = 3  # batches of each task, after one to warm up


def planned(config: RunConfig) -> list[list[str]]:
    """Rows of epoch, task, examples, passes over its data, batches, steps of the epoch, time.

    An epoch has a row for each task that it trains.

    Nothing is written and no weight moves; the time is that of the gradients of a few batches, and
    leaves out optimiser and evaluation.
    """
    # It writes nothing before a step.
    trainer = make_trainer(config, Path())
    trainer.model.train()
    sizes, streams = trainer.plan.work.sizes, trainer.streams
    seconds = [seconds_per_example(trainer.gradient, stream) for stream in streams]
    rows, whole = [], 0.0
    for epoch in range(1, config.epochs + 1):
        steps = trainer.plan.steps(epoch)
        batches = np.bincount(np.concatenate(steps), minlength=len(sizes))
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


def seconds_per_example(gradient: StepGradient, stream: BatchStream) -> float:
    """Time of one task's gradients; the stream is put back to its beginning."""
    elapsed, examples = 0.0, 0
    for number in range(TIMED + 1):
        rows = stream.next()
        begin = time.perf_counter()
        gradient({stream.task: [rows]})
        if number:
            elapsed += time.perf_counter() - begin
            examples += len(rows)
        gradient.model.zero_grad(set_to_none=True)
    stream.position = (0, 0)
    return elapsed / examples


def duration(seconds: float) -> str:
    """1 h 02 min, 3 min, 12 s."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"
