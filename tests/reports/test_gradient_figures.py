"""Mean cosines of gradients by part of the encoder."""

import json

import numpy as np

from multitask.runs import Run
from reports.gradient_figures import PartCosines, conflict_map

STEPS = [
    {"step": 1, "weights": {}, "layers": {"layer 1": {"sst and sts": 0.5}, "layer 2": {}}},
    {"step": 2, "weights": {}},  # not measured
    {
        "step": 3,
        "weights": {},
        "layers": {
            "layer 1": {"sst and sts": -0.1, "sst and qqp": 0.2},
            "layer 2": {"sst and sts": -0.3},
        },
    },
]


def stored(folder, steps):
    (folder / "telemetry.jsonl").write_text("".join(f"{json.dumps(step)}\n" for step in steps))
    run = Run(folder)
    run.settings = {"seed": 3}
    return run


def test_cosines_are_means_over_the_steps_that_measured_them(tmp_path):
    found = PartCosines.of_run(stored(tmp_path, STEPS))
    assert found.parts == ("layer 1", "layer 2")
    assert found.pairs == ("sst and qqp", "sst and sts")
    np.testing.assert_allclose(found.means, [[0.2, 0.2], [np.nan, -0.3]])
    assert found.detail == "mean of 2 steps, seed 3"


def test_a_run_without_cosines_has_no_map(tmp_path):
    assert conflict_map(stored(tmp_path, STEPS[1:2])) is None
