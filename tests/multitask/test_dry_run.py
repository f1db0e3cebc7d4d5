"""The dry run: what is counted is what training would do, and nothing is trained."""

import json
from dataclasses import replace

import pytest

from common.errors import RunError, SettingsError
from multitask import train
from multitask.adapters import Copies
from multitask.assembly import assemble
from multitask.dry_run import dry_run_rows
from multitask.loop.streams import next_batches
from multitask.settings.config import RunConfig


def test_missing_source_runs_are_errors(base_config, tmp_path):
    nothing = str(tmp_path / "nothing")
    for changes in ({"teacher": (nothing,)}, {"init": nothing}):
        with pytest.raises(RunError, match="nothing: expected a run"):
            dry_run_rows(replace(base_config, **changes))


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
        {"schedule": "first-then-joint", "first_task": "sts", "combiner": "sum", "epochs": 3},
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


def test_layers_of_conflicts_are_chosen_and_teachers_are_not_asked(tmp_path, monkeypatch, capsys):
    lines = [{"step": k, "layers": {"layer 1": {"sst and sts": -0.5}}} for k in (1, 2, 3)]
    (tmp_path / "telemetry.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    monkeypatch.setattr("multitask.run.assemble", lambda config, **_: assembled(config))
    monkeypatch.setattr("multitask.conflict_layers.parameter_ratio", lambda *_: 1.1)
    monkeypatch.setattr("multitask.dry_run.check_source_weights", lambda config: None)
    monkeypatch.setattr("multitask.dry_run.check_encoder_of_init", lambda config: None)
    adapter = Copies(conflict_layers="auto")
    start = {"encoder": "tiny", "init": str(tmp_path), "teacher": (str(tmp_path / "teacher"),)}
    config = RunConfig(tasks=("sst", "sts"), adapter=adapter, limit=40, **start)
    *rows, _ = dry_run_rows(config)
    assert {row[1] for row in rows} == {"sst", "sts"}
    assert "adapters in 1 of 1 layers" in capsys.readouterr().out


def assembled(config):
    """The parts of a run that begins with the plain encoder, not with that of `init`."""
    assert config.adapter.layers == (1,)
    return assemble(config.changed(init=None))
