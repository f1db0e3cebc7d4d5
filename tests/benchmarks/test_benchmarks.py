"""Benchmarks run on the bundled sample, and find our results equal to the peers'."""

import sys
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from benchmarks import (
    __main__,
    class_losses,
    encode,
    lstm,
    serving,
    smaller,
    startup,
    timing,
    train_steps,
)
from benchmarks import sides as scripts
from benchmarks.timing import gemm_seconds, in_rounds, rate_table, seconds_table
from common.json_files import read_json
from minbert.bi_encoder import BiEncoder
from minbert.sizes import Sizes
from tasks import build_task, data_folder


def sentences_of(folder, count):
    """Distinct sentences of the training pairs of STS."""
    columns = build_task("sts").read(folder, "train").texts
    return list(dict.fromkeys(text for column in columns for text in column))[:count]


@pytest.fixture(autouse=True)
def small_products(monkeypatch):
    """The limit is of matrices that are multiplied in no time."""
    monkeypatch.setattr(timing, "GEMM_TOKENS", 64)


@pytest.fixture
def measured(tmp_path, monkeypatch, capsys):
    def run(name, *flags):
        file = tmp_path / "figures.json"
        argv = ["benchmarks", name, "--repetitions", "1", "--output", str(file), *flags]
        monkeypatch.setattr(sys, "argv", argv)
        __main__.main()
        found = read_json(file)
        assert found["benchmark"] == name
        output = capsys.readouterr().out
        for group, sides in found["groups"].items():
            assert group in output
            for side, figures in sides.items():
                assert side in output
                assert figures["median"] > 0
        return found["groups"]

    return run


@pytest.fixture
def small_steps(monkeypatch):
    for setting, value in (("BATCH", 4), ("STEPS", 1)):
        changed = dict.fromkeys(getattr(train_steps, setting), value)
        monkeypatch.setattr(train_steps, setting, changed)


@pytest.mark.slow
def test_the_fastest_precision_near_fp32_is_recommended():
    def sides(**speeds):
        cosines = {"fp32": (1.0, 1.0), "bf16": (0.9999, 0.99995), "int8": (0.98, 0.999)}
        return {
            f"ours {name}": {
                "median": speed,
                "cosine_min": cosines[name][0],
                "cosine_mean": cosines[name][1],
            }
            for name, speed in speeds.items()
        }

    groups = {"a": sides(fp32=100, bf16=400, int8=900), "b": sides(fp32=100, bf16=100, int8=900)}
    line = encode.recommendation(groups, ["fp32", "bf16", "int8"])
    assert line.endswith("0.998: bf16, 2.00 x fp32")
    assert encode.recommendation(groups, ["int8"]).startswith("none of the precisions has cosines")


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
@pytest.mark.parametrize(("name", "sides"), [("train-step", 9), ("simcse-step", 4)])
def test_train_steps(measured, small_steps, name, sides):
    (found,) = measured(name).values()
    assert len(found) == sides
    assert found["ours fp32"]["gradient_difference"] <= 1e-5
    assert 1e-4 < found["ours bf16"]["gradient_difference"] <= 5e-2


@pytest.mark.slow
def test_contrastive_step(measured, small_steps):
    (found,) = measured("contrastive-step", "--precisions", "fp32").values()
    assert set(found) == set(train_steps.OBJECTIVES)
    assert all(side["times_plain"] > 0 for side in found.values())


@pytest.mark.slow
def test_class_losses(measured, monkeypatch):
    monkeypatch.setattr(class_losses, "SENTENCES", 40)
    monkeypatch.setattr(class_losses, "TRIPLET_SENTENCES", 20)
    monkeypatch.setattr(class_losses, "GROWING", (10, 30))
    pairs, triplets, *growing = measured("class-losses").values()
    assert [set(sides) for sides in growing] == [{"ours SupCon", "ours LaCon"}] * 2
    assert (len(pairs), len(triplets)) == (4, 2)
    assert all(side["peak_mb"] > 0 for side in (*pairs.values(), *triplets.values()))


@pytest.mark.slow
def test_lstm(measured, monkeypatch):
    monkeypatch.setattr(lstm, "SHAPES", {"2 x 8": (2, 8)})
    (found,) = measured("lstm", "--texts", "20").values()
    assert len(found) == 3
    assert found["ours"]["gradient_difference"] <= 1e-5


@pytest.mark.slow
def test_smaller(measured, monkeypatch):
    monkeypatch.setattr(
        smaller, "SIDES", {one: smaller.SIDES[one] for one in (smaller.precisions, smaller.onnx)}
    )
    (found,) = measured("smaller", "--texts", "20").values()
    assert found["ours fp32"]["cosine_min"] == pytest.approx(1)
    assert found["ours fp32"]["nearest"] == 1
    for name, least in (("ours bf16", 0.9995), ("ONNX Runtime int8, bucketed 64", 0.98)):
        assert found[name]["cosine_mean"] >= least
        assert abs(found[name]["spearman"] - found["ours fp32"]["spearman"]) < 0.02
    # Rounding swaps ranks of almost equal cosines only.
    full = found["ONNX Runtime fp32, bucketed 64"]
    assert full["spearman"] == pytest.approx(found["ours fp32"]["spearman"], abs=1e-3)


def test_static_students_are_compared_in_their_own_space(monkeypatch):
    texts = sentences_of(data_folder("sample"), 60)
    place = smaller.Place(BiEncoder.from_pretrained("tiny"), texts, ["fp32"])
    monkeypatch.setattr(smaller, "STATIC_WIDTHS", (8,))
    monkeypatch.setattr(smaller, "SIDES", dict.fromkeys((smaller.precisions, smaller.students), ()))
    sides = smaller.build_sides(place)
    found = smaller.compare(sides, texts, 1)["ours static 8"]
    assert found["cosine_mean"] > 0.9
    assert 0 < found["nearest"] <= 1


def test_each_trained_size_is_measured_and_drawn(tmp_path):
    model = BiEncoder.from_pretrained("tiny")
    model.sizes = Sizes(widths=(model.size.width, 8), exits=(model.size.layers, 1))
    texts = sentences_of(data_folder("sample"), 30)
    sides = smaller.sizes(model, ["bf16"])
    assert len(sides) == 8
    found = smaller.compare(sides, texts, 1)
    narrow = found[f"fp32, {model.size.layers} layers, 8 wide"]
    assert narrow["cosine_min"] == pytest.approx(1)  # the first dimensions of the complete one
    assert "cosine_min" not in found["fp32, 1 layers, 8 wide"]
    for figures in found.values():
        figures["spearman"] = 0.5
    smaller.draw({"tiny, 30 questions": found}, tmp_path / "sizes.svg")
    drawing = (tmp_path / "sizes.svg").read_text()
    for part in ("bf16", "1 layers, 8 wide", "tiny", "30 questions"):
        assert part in drawing


def test_a_run_is_refused_where_no_sizes_are_measured(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "encode", "--run", "runs/x"])
    with pytest.raises(SystemExit):
        __main__.main()
    assert "--run and --figure: expected smaller, found encode" in capsys.readouterr().err


def test_sides_without_their_packages_are_skipped(monkeypatch, capsys):
    monkeypatch.setattr(smaller, "SIDES", {smaller.openvino: ("no_such_package",)})
    assert smaller.build_sides(smaller.Place(BiEncoder.from_pretrained("tiny"), [], [])) == {}
    assert capsys.readouterr().out == "no_such_package: not installed, so openvino is skipped\n"


def test_nearest_texts_equal_those_of_a_double_loop():
    embeddings = np.random.default_rng(0).normal(size=(30, 4))
    for row, found in enumerate(smaller.nearest(embeddings)):
        one = embeddings[row]
        cosines = [one @ other / np.linalg.norm(other) for other in embeddings]
        order = sorted((place for place in range(30) if place != row), key=lambda i: -cosines[i])
        assert set(found) == set(order[:10])


@pytest.mark.slow
def test_our_startup_commands_and_the_peers_scripts_succeed(tmp_path, monkeypatch):
    """The peer's scripts run in this process, which imports its modules once for all tests."""

    def stop():
        raise SystemExit(0)

    monkeypatch.setattr(scripts, "end", stop)
    for name, commands in startup.commands(tmp_path).items():
        (_, _, _, script, *arguments), ours = commands.values()
        with pytest.raises(SystemExit) if "step" in name else nullcontext():
            getattr(scripts, script)(*arguments)
        assert (tmp_path / "sentence.npy").exists() == ("sentence" in name)
        assert startup.seconds_of(ours) > 0


def test_a_failing_command_raises_an_error():
    with pytest.raises(RuntimeError, match="no_such_script"):
        startup.seconds_of([sys.executable, "-m", "benchmarks.no_such_script"])


def test_sides_are_interleaved_and_the_first_round_warms_up():
    order: list[str] = []

    def side(name):
        return lambda: order.append(name) or float(len(order))

    found = in_rounds({name: side(name) for name in "abc"}, 9)
    rounds = ["".join(order[begin : begin + 3]) for begin in range(0, 30, 3)]
    assert all(sorted(several) == list("abc") for several in rounds)
    assert len(set(rounds)) > 2, "no side always follows the same one"
    for name in "abc":
        assert found[name] == [place + 1 for place, one in enumerate(order) if one == name][1:]


def test_ratios_are_speed_ups_over_the_peer():
    found = {"ours": [1.0, 2.0, 6.0], "peer": [4.0, 5.0, 6.0]}
    seconds = seconds_table(found, "peer")
    assert seconds["ours"] == {"min": 1.0, "median": 2.0, "max": 6.0, "ratio": 2.5}
    assert seconds["peer"]["ratio"] == 1.0
    rates = rate_table(found, 10.0, "peer")
    assert rates["ours"]["median"] == 5.0
    assert rates["ours"]["ratio"] == pytest.approx(2.5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_gemm_limit_is_proportional_to_the_tokens(precision, monkeypatch):
    timed = []
    monkeypatch.setattr(timing, "timed_on", lambda work, device: timed.append(work()) or 0.5)
    one, two = (gemm_seconds(tokens, 6, precision, torch.device("cpu")) for tokens in (100, 10_000))
    assert two == pytest.approx(100 * one)
    assert one > 0
    # A training step has three products for each one of the forward pass.
    training = gemm_seconds(100, 6, precision, torch.device("cpu"), training=True)
    assert training == pytest.approx(3 * one)
    assert timed


@pytest.mark.slow
def test_serving(measured, monkeypatch):
    monkeypatch.setattr(serving, "ENCODER", "tiny")
    monkeypatch.setattr(serving, "CLIENTS", (1, 4))
    groups = measured("serving", "--texts", "12")
    assert len(groups) == 2
    for sides in groups.values():
        assert set(sides) == {"joined", "one by one"}
        assert all(0 < side["p50_ms"] <= side["p95_ms"] for side in sides.values())
