"""How far from the ray of its preference a run ended, from invented telemetry."""

import json

import pytest

from multitask.telemetry import pull_and_push, ray_text


def written(file, steps):
    lines = [
        {
            "step": number,
            "losses": {"sst/cross_entropy": 1.0, "sst/pull": pull, "sst/push": push, "sts": 2.0},
            "weights": {"sst/cross_entropy": 1.0, "sst/pull": a, "sst/push": b, "sts": 1.0},
        }
        for number, (pull, push, a, b) in enumerate(steps, 1)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_on_the_ray(tmp_path):
    file = written(tmp_path / "t.jsonl", [(9, 9, 1, 0)] * 50 + [(0.9, 0.1, 0.03, 0.27)] * 100)
    found = pull_and_push(file, (0.1, 0.9))["sst"]
    assert found == {"steps": 100, "pull": 0.09, "push": 0.09, "apart": 0.0, "at_a_vertex": 0.0}
    assert "out of reach" not in ray_text("sst", found)


@pytest.mark.parametrize(("weights", "out"), [((0.3, 0.0), True), ((0.2, 0.1), False)])
def test_far_from_it_and_at_a_vertex_it_is_out_of_reach(tmp_path, weights, out):
    file = written(tmp_path / "t.jsonl", [(1.0, 0.5, *weights)] * 8)
    found = pull_and_push(file, (0.5, 0.5))["sst"]
    assert (found["apart"], found["steps"]) == (0.5, 8)
    assert ("the ray is out of reach here" in ray_text("sst", found)) == out


def test_tasks_without_the_two_have_none(tmp_path):
    (tmp_path / "t.jsonl").write_text(
        '{"step": 1, "losses": {"sst": 1.0}, "weights": {"sst": 1}}\n'
    )
    assert pull_and_push(tmp_path / "t.jsonl", (0.5, 0.5)) == {}
