"""Telemetry: a line for each step, means on the curves, and conflicts."""

import json

import numpy as np
import pytest

from multitask.combiners import Combined
from multitask.loop.step import StepResult
from multitask.loop.telemetry import Telemetry, cosines, read_steps, step_line, summary


def result(losses=(1.0, 2.0), gram=((4.0, -3.0), (-3.0, 9.0)), names=("a", "b")):
    grams = {"embeddings": np.array(gram), "layer 1": np.array([[0.0, 0.0], [0.0, 1.0]])}
    weights = np.array([0.5, 1.5])[: len(names)]
    if len(names) == 1:
        grams = {}
    return StepResult(names, np.array(losses), Combined(weights, "solved"), grams, 8)


def test_a_line_has_losses_weights_and_cosines_of_the_whole_and_of_each_section():
    line = step_line(result())
    assert line["losses"] == {"a": 1.0, "b": 2.0}
    assert line["weights"] == {"a": 0.5, "b": 1.5}
    assert line["status"] == "solved"
    assert line["cosines"] == {"a and b": pytest.approx(-3 / (2 * 10**0.5))}
    assert line["conflict_rate"] == 1.0
    assert line["layers"]["embeddings"] == {"a and b": -0.5}
    assert line["layers"]["layer 1"] == {"a and b": 0.0}  # a's gradient is zero there
    single = step_line(result((1.0,), names=("a",)))
    assert single["cosines"] == {}
    assert "layers" not in single


def test_a_gradient_that_is_not_finite_has_no_cosine_and_a_zero_one_has_0():
    gram = np.array([[np.nan, np.nan, 0], [np.nan, 1, 0], [0, 0, 0]])
    found = cosines(("a", "b", "c"), gram)
    assert np.isnan(found["a and b"])
    assert found["b and c"] == 0


def test_conflicts_are_counted_for_each_pair():
    several = (result(), result(gram=((4.0, 3.0), (3.0, 9.0))), result((1.0,), names=("a",)))
    found = summary([step_line(one) for one in several])
    pair = found["conflicts"]["a and b"]
    assert (pair["steps"], pair["conflict_rate"]) == (2, 0.5)
    assert pair["mean_cosine"] == pytest.approx(0, abs=1e-9)
    assert found["combiner_steps"] == {"solved": 3}


def points(folder, name):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {point.step: point.value for point in events.Scalars(name)}


def test_every_step_is_a_line_and_every_tenth_a_point_of_their_mean(tmp_path):
    telemetry = Telemetry(tmp_path, tensorboard=True)
    for step in range(1, 26):
        telemetry.step(step, result((float(step), 2.0)), {"gradient_norm": 3.0})
    telemetry.close()
    lines = list(read_steps(tmp_path / "telemetry.jsonl"))
    assert [line["step"] for line in lines] == list(range(1, 26))
    assert [line["losses"]["a"] for line in lines] == list(range(1, 26))
    assert lines[0]["gradient_norm"] == 3.0
    assert points(tmp_path, "train/losses/a") == {10: 5.5, 20: 15.5, 25: 23.0}
    assert points(tmp_path, "train/weights/b")[10] == 1.5
    assert points(tmp_path, "train/cosines/a and b")[25] == pytest.approx(-0.474, abs=1e-3)
    assert points(tmp_path, "train/conflict_rate") == {10: 1, 20: 1, 25: 1}
    assert points(tmp_path, "train/layers/embeddings/a and b")[10] == -0.5


def test_resuming_drops_the_lines_after_the_checkpoint(tmp_path):
    first = Telemetry(tmp_path)
    for step in range(1, 8):
        first.step(step, result(), {})
    first.close()
    file = tmp_path / "telemetry.jsonl"
    file.write_text(file.read_text()[:-20])  # killed while it wrote the last line
    with file.open("ab") as damaged:
        damaged.write(b"\0" * 40 + b"\nnot json\n[1]\n{}\n\xff\n")
    second = Telemetry(tmp_path)
    second.forget_after(4)
    second.step(5, result((9.0, 9.0)), {})
    second.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[-1]["losses"]["a"] == 9.0
