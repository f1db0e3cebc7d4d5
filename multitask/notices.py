"""Lines that a run prints where it may not be what its user means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from multitask.config import RunConfig
from multitask.schedule import Plan

WIDTH = 384  # of the encoder with which the default rates were chosen
SEEN = 0.5  # of a task's examples in an epoch, below which a line reports it


def notices(config: RunConfig, plan: Plan, width: int) -> Iterator[str]:
    """One line for each thing to know before the first step, with an encoder of some width."""
    yield from of_sample(config)
    yield from of_coverage(config, plan)
    yield from of_rates(config, width)


def of_rates(config: RunConfig, width: int) -> Iterator[str]:
    """The default rate with an encoder that is wider than the one it suits."""
    if width > WIDTH and config.optimizer.lr == type(config.optimizer)().lr:
        yield (
            f"lr {config.optimizer.lr:g}: suits an encoder of width {WIDTH}, found {width}; BEES "
            "fine-tunes BERT base at --lr 2e-5 --head-lr 2e-5 (--preset bees-bert)"
        )


def of_sample(config: RunConfig) -> Iterator[str]:
    """Own data trained beside the bundled sample."""
    sample = [name for name in config.tasks if name not in config.own_tasks]
    if config.own_tasks and sample and config.data == "sample":
        yield (
            f"{', '.join(sample)}: trained on the bundled sample, which is made from templates, "
            f"beside your own {', '.join(config.own_tasks)}; --data DIR takes real files"
        )


def of_coverage(config: RunConfig, plan: Plan) -> Iterator[str]:
    """Tasks of whose examples an epoch sees less than half, because a smaller task ends it."""
    if not plan.sampler.ends_with_smallest or config.steps_per_epoch is not None:
        return
    sizes = plan.work.sizes
    epoch = plan.first_epochs + 1
    batches = np.bincount(np.concatenate(plan.steps(epoch)), minlength=len(sizes))
    smallest = config.tasks[int(np.argmin(sizes))]
    for name, size, count in zip(config.tasks, sizes, batches, strict=True):
        seen = min(size, int(count) * config.batch_size)
        if seen < SEEN * size:
            yield (
                f"{name}: an epoch sees {seen:,} of {size:,} examples, because it ends with the "
                f"smallest task, {smallest}; --steps-per-epoch N or --sampling proportional "
                "changes it"
            )
