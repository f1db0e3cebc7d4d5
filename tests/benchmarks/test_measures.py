"""Each benchmark runs on the bundled sample, and finds our results equal to the peers'."""

import sys

import pytest

from benchmarks import (
    __main__,
    class_losses,
    contrastive_step,
    encode,
    lstm,
    simcse_step,
    train_step,
)
from common.json_files import read_json


@pytest.fixture
def measured(tmp_path, monkeypatch, capsys):
    def run(name, *flags):
        file = tmp_path / "figures.json"
        argv = ["benchmarks", name, "--repetitions", "1", "--output", str(file), *flags]
        monkeypatch.setattr(sys, "argv", argv)
        __main__.main()
        found = read_json(file)
        assert found["benchmark"] == name
        shown = capsys.readouterr().out
        for group, sides in found["groups"].items():
            assert group in shown
            for side, figures in sides.items():
                assert side in shown
                assert figures["median"] > 0
        return found["groups"]

    return run


@pytest.mark.slow
def test_encode(measured, monkeypatch):
    monkeypatch.setattr(encode, "BATCH_SIZES", (32,))
    groups = measured("encode", "--texts", "10")
    assert len(groups) == 2
    for sides in groups.values():
        for precision, least in (("fp32", 0.99999), ("bf16", 0.9995)):
            for name in (f"ours {precision}", f"transformers {precision}, bucketed 64"):
                assert sides[name]["cosine_min"] >= least
                assert sides[name]["share_of_limit"] > 0
        assert sides["ONNX Runtime fp32, bucketed 64"]["cosine_min"] >= 0.99999


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "module", "sides"), [("train-step", train_step, 7), ("simcse-step", simcse_step, 4)]
)
def test_steps(measured, monkeypatch, name, module, sides):
    monkeypatch.setattr(module, "BATCH", 4)
    monkeypatch.setattr(module, "STEPS", 1)
    (found,) = measured(name).values()
    assert len(found) == sides
    assert found["ours fp32"]["gradient_difference"] <= 1e-5
    assert 1e-4 < found["ours bf16"]["gradient_difference"] <= 5e-2


@pytest.mark.slow
def test_contrastive_step(measured, monkeypatch):
    monkeypatch.setattr(contrastive_step, "BATCH", 8)
    monkeypatch.setattr(contrastive_step, "STEPS", 1)
    (found,) = measured("contrastive-step", "--precisions", "fp32").values()
    assert set(found) == set(contrastive_step.SIDES)
    assert all(side["times_plain"] > 0 for side in found.values())


@pytest.mark.slow
def test_class_losses(measured, monkeypatch):
    monkeypatch.setattr(class_losses, "SENTENCES", 40)
    monkeypatch.setattr(class_losses, "TRIPLET_SENTENCES", 20)
    monkeypatch.setattr(class_losses, "GROWING", (10, 30))
    pairs, triplets, *growing = measured("class-losses").values()
    assert [set(sides) for sides in growing] == [{"ours SupCon", "ours LaCon"}] * 2
    assert len(pairs) == 4
    assert len(triplets) == 2
    assert all(side["peak_mb"] > 0 for side in (*pairs.values(), *triplets.values()))


@pytest.mark.slow
def test_lstm(measured, monkeypatch):
    monkeypatch.setattr(lstm, "SHAPES", {"2 x 8": (2, 8)})
    (found,) = measured("lstm", "--texts", "20").values()
    assert len(found) == 3
    assert found["ours"]["gradient_difference"] <= 1e-5
