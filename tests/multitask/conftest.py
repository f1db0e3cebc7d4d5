"""A trainer on the bundled sample and the random tiny encoder, small enough to step in tests."""

from dataclasses import replace
from pathlib import Path

import pytest

from multitask.assembly import assemble
from multitask.config import RunConfig
from multitask.distributed import Processes
from multitask.trainer import Trainer
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


@pytest.fixture
def make_trainer(tmp_path):
    """`make_trainer(folder_name, **changes of the configuration)` -> Trainer."""

    def make(name="run", processes=Processes(), **changes) -> Trainer:
        config = replace(BASE, **changes)
        chosen, model, splits = assemble(config)
        folder = Path(tmp_path / name)
        folder.mkdir(exist_ok=True)
        return Trainer(model, chosen, splits, config, folder, processes)

    return make
