"""What a run prints about itself before its first step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from common.text import all_names
from multitask.loop.trainer import Trainer
from multitask.settings.config import RunConfig
from tasks import SAMPLE

WIDTH = 384  # width of the encoder for which the default rates were chosen


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


def training_notices(config: RunConfig, width: int) -> Iterator[str]:
    """Yield advice to print before the first step; `width` is that of the encoder.

    It is about own data beside the bundled sample, and the default rate with a wider encoder.
    """
    sample = [name for name in config.tasks if name not in config.own_tasks]
    if config.own_tasks and sample and config.data == SAMPLE:
        yield (
            f"{', '.join(sample)}: trained on the bundled sample, which is made from templates, "
            f"with your own {', '.join(config.own_tasks)}; --data DIR reads real files"
        )
    default = config.optimizer.lr == type(config.optimizer)().lr
    if width > WIDTH and default and not config.freeze_encoder:
        yield (
            f"lr {config.optimizer.lr:g}: suits an encoder of width {WIDTH}, found {width}; BEES "
            "fine-tunes BERT base at --lr 2e-5 --head-lr 2e-5 (--preset bees)"
        )
