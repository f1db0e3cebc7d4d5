"""A trainer on the bundled sample and the random tiny encoder, small enough to step in tests."""

from dataclasses import replace
from pathlib import Path

import pytest

from multitask.loop.trainer import Trainer
from multitask.settings.config import RunConfig
from tasks import CS224N

BASE = RunConfig(
    mode="multitask",
    tasks=CS224N,
    encoder="tiny",
    sampling="annealed",
    combiner="pcgrad",
    batch_size=4,
    epochs=2,
    limit=40,
)


@pytest.fixture
def base_config():
    return BASE


SINGLE = {"mode": "single", "batches_per_step": 1, "combiner": "sum"}


@pytest.fixture
def make_trainer(tmp_path):
    """`make_trainer(folder_name, only=task, dropout=False, **changes of the configuration)`."""

    def make(name="run", only=None, dropout=True, **changes) -> Trainer:
        single = SINGLE | {"tasks": (only,)} if only else {}
        config = replace(BASE, **(single | changes))
        folder = Path(tmp_path / name)
        folder.mkdir(exist_ok=True)
        trainer = Trainer(config, folder)
        if not dropout:
            trainer.model.eval()  # the same batch gives the same gradient again
        return trainer

    return make
