"""The cost of a study: examples, steps and operations of runs that are left."""

from dataclasses import replace

import pytest
import torch

from multitask.regularizers import Proximal, RDrop, Smart
from multitask.settings.config import RunConfig
from studies.bees.cells import row_cell
from studies.cost import DEVICES, PIECES_PER_WORD, Cost, cost_of, cost_table, encoder_weights
from studies.results import Results
from tasks import build_task, data_folder

BASE = RunConfig(mode="single", tasks=("sst",), encoder="tiny", limit=16, batch_size=8, epochs=2)


def test_the_weights_are_those_of_the_layers():
    assert encoder_weights("minilm") == 6 * (4 * 384**2 + 2 * 384 * 1536)
    assert encoder_weights("bert-base-uncased") == 12 * (4 * 768**2 + 2 * 768 * 3072)
    lstm = torch.nn.LSTM(300, 128, num_layers=2, bidirectional=True, bias=False)
    weights = sum(one.numel() for one in lstm.parameters())
    assert encoder_weights("bilstm-2x128-dropout0.2") == weights


def test_operations_are_counted_by_hand():
    cost = cost_of(BASE)
    assert (cost.runs, cost.examples, cost.steps) == (1, 32, 4)
    examples = build_task("sst").read(data_folder("sample"), "train", 16)
    words = sum(len(text.split()) for text in examples.texts[0]) / 16
    expected = 32 * (2 + PIECES_PER_WORD * words) * 6 * encoder_weights("tiny")
    assert cost.operations == pytest.approx(expected)


@pytest.mark.parametrize(
    ("regularizer", "passes"),
    [(Smart(1.0), 3), (Smart(1.0, steps=2), 4), (RDrop(1.0), 2), (Proximal(1.0), 4 / 3)],
)
def test_regularisers_take_further_passes(regularizer, passes):
    plain, regularised = cost_of(BASE), cost_of(BASE.changed(regularizers=(regularizer,)))
    assert regularised.operations == pytest.approx(passes * plain.operations)
    assert regularised.steps == plain.steps


def test_a_combiner_that_compares_losses_takes_a_further_forward_pass():
    two = BASE.changed(mode="multitask", tasks=("sst", "sts"))
    compared = cost_of(two.changed(combiner="famo"))
    assert compared.operations == pytest.approx(4 / 3 * cost_of(two).operations)


def test_a_frozen_encoder_needs_only_the_forward_pass():
    frozen = cost_of(BASE.changed(freeze_encoder=True))
    assert 3 * frozen.operations == pytest.approx(cost_of(BASE).operations)
    adapted = cost_of(BASE.changed(freeze_encoder=True, adapter="lora"))
    assert 3 * adapted.operations == pytest.approx(2 * cost_of(BASE).operations)


def test_hours_are_those_of_operations_and_steps():
    for device in DEVICES:
        for precision, operations in device.operations.items():
            cost = Cost(1, 0, 3600, 2 * operations * 3600)
            assert cost.hours(device, precision) == pytest.approx(2 + device.step_seconds)


def test_a_cell_that_cannot_be_run_has_the_reason(tmp_path):
    base = replace(BASE, tasks=())
    cells = [row_cell(name, base, 2) for name in ("M8", "M6")]
    rows = cost_table(cells, Results(tmp_path), tmp_path, "bf16")[1]
    assert "expected one task larger than the others" in rows[0][1]
    assert rows[1][:2] == ["M6", "5"]


def test_the_table_has_the_runs_that_are_left_and_pre_training_once(tmp_path, monkeypatch):
    base = replace(BASE, mode="single", tasks=())
    cells = [replace(row_cell(name, base, 1), seeds=(11711, 1)) for name in ("M6", "M13", "M16")]
    header, rows = cost_table(cells, Results(tmp_path), tmp_path, "fp32")
    assert header[:4] == ["cell", "runs", "examples", "steps"]
    found = {row[0]: int(row[1]) for row in rows}
    assert found == {"M6": 2, "simcse-sts-cls": 2, "M13": 2, "M16": 2, "all": 8}
    results = Results(tmp_path)
    stored = {"dev": {"sts": {"pearson": 0.5}}}
    results.add(cells[0], 1, stored, tmp_path)
    found = {row[0]: int(row[1]) for row in cost_table(cells, results, tmp_path, "fp32")[1]}
    assert found == {"M6": 1, "simcse-sts-cls": 2, "M13": 2, "M16": 2, "all": 7}
    monkeypatch.setattr(results, "finished_folder", lambda cell, seed, runs: seed == 1 or None)
    found = {row[0]: int(row[1]) for row in cost_table(cells, results, tmp_path, "fp32")[1]}
    assert found["simcse-sts-cls"] == 1, "that of the other seed has its folder"
