"""The dry run: what is counted is what training would do, and nothing is trained."""

from dataclasses import replace

import pytest

from common.errors import SettingsError
from multitask import train
from multitask.dry_run import dry_run_rows
from multitask.loop.streams import next_batches
from multitask.sampling import FirstThenJoint


def test_another_encoder_than_that_of_init_is_an_error(base_config, tmp_path):
    start = train(base_config.changed(limit=8, epochs=1, combiner="sum"), tmp_path / "start").folder
    config = replace(base_config, init=str(start)).changed(encoder="minilm")
    with pytest.raises(SettingsError, match="encoder: expected tiny, the encoder of init"):
        dry_run_rows(config)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sampling": "hybrid", "epochs": 3},
        {"schedule": "individual", "combiner": "sum"},
        {"schedule": FirstThenJoint("sts"), "combiner": "sum", "epochs": 3},
        {"steps_per_epoch": 25},  # more than one pass
    ],
    ids=str,
)
def test_examples_and_steps_are_those_of_the_run(make_trainer, base_config, changes):
    config = replace(base_config, **changes)
    *rows, total = dry_run_rows(config)
    trainer = make_trainer(**changes)
    found = []
    for epoch in range(1, config.epochs + 1):
        before = dict.fromkeys(trainer.tasks, 0)
        steps = trainer.plan.steps(epoch)
        for step in steps:
            for name, batches in next_batches(trainer.streams, step).items():
                before[name] += sum(len(rows) for rows in batches)
        found += [
            [str(epoch), name, str(count), f"{count / 40:.2f}", str(len(steps))]
            for name, count in before.items()
            if count
        ]
    assert [[*row[:4], row[5]] for row in rows] == found
    assert total[5] == str(trainer.total_steps)
