"""What a run prints about itself before its first step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.text import all_names
from multitask.loop.trainer import Trainer
from multitask.plan import Plan, batches_by_task
from multitask.settings.config import RunConfig
from tasks import SAMPLE

WIDTH = 384  # width of the encoder for which the default rates were chosen
SEEN = 0.5  # smallest share of a task's examples in an epoch without a notice


def opening_line(trainer: Trainer) -> str:
    """Return `trains minilm on sst and sts, on cpu: 3 epochs, 57 steps in all`."""
    config = trainer.config
    several = [one for one in trainer.tasks if one not in config.auxiliary]
    names = all_names(several)
    names += f" beside {', '.join(config.auxiliary)} (auxiliary)" if config.auxiliary else ""
    epochs = f"{config.epochs} epoch{'s' if config.epochs > 1 else ''}"
    steps = f"{trainer.total_steps:,} step{'s' if trainer.total_steps > 1 else ''}"
    return (
        f"{'pre-trains' if config.pretrains else 'trains'} {Path(config.encoder).name} on {names}, "
        f"on {trainer.model.bi_encoder.device}: {epochs}, {steps} in all"
    )


def training_notices(config: RunConfig, plan: Plan, width: int) -> Iterator[str]:
    """Yield the notices to print before the first step; `width` is that of the encoder.

    They are about own data trained with the bundled sample, tasks with less than half of their
    examples in an epoch, and the default rate with a wider encoder.
    """
    sample = [name for name in config.tasks if name not in config.own_tasks]
    if config.own_tasks and sample and config.data == SAMPLE:
        yield (
            f"{', '.join(sample)}: trained on the bundled sample, which is made from templates, "
            f"with your own {', '.join(config.own_tasks)}; --data DIR reads real files"
        )
    if plan.sampler.ends_with_smallest and config.steps_per_epoch is None:
        sizes, steps = plan.work.sizes, plan.steps(plan.first_epochs + 1)
        batches = batches_by_task(steps, len(sizes))
        smallest = [*config.tasks][int(np.argmin(sizes))]
        for name, size, count in zip(config.tasks, sizes, batches, strict=True):
            seen = min(size, int(count) * config.batch_size)
            if seen < SEEN * size:
                yield (
                    f"{name}: an epoch sees {seen:,} of {size:,} examples, because it ends with "
                    f"the smallest task, {smallest}; --steps-per-epoch N or --sampling "
                    "proportional changes it"
                )
    default = config.optimizer.lr == type(config.optimizer)().lr
    if width > WIDTH and default and not config.freeze_encoder:
        yield (
            f"lr {config.optimizer.lr:g}: suits an encoder of width {WIDTH}, found {width}; BEES "
            "fine-tunes BERT base at --lr 2e-5 --head-lr 2e-5 (--preset bees)"
        )
