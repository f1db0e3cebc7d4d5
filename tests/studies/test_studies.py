"""Studies end to end on the tiny encoder: what they leave, and that finished cells are kept."""

import json
import sys
from pathlib import Path

import pytest
from cell_files import write_times

from minbert.batching import NOISE_PLACES
from multitask.sampling import build_plan
from multitask.settings.config import RunConfig
from studies import find_study, mixing, noise, regularisation, toy_front
from studies.claims import mean_per_seed
from studies.lacon import cells as lacon
from studies.reproduce import requested_seeds
from studies.results import Cell
from studies.runner import training
from studies.scl_moo import cells as scl_moo
from studies.study import StudyRequest
from studies.supercontext import cells as supercontext


def call(monkeypatch, capsys, module, *argv):
    monkeypatch.setattr(sys, "argv", ["study", *map(str, argv)])
    module.main()
    return capsys.readouterr().out


BASE = RunConfig(mode="single", tasks=(), limit=8000)
TINY = ("--encoder", "tiny", "--precision", "fp32")


def request(**changes):
    return StudyRequest(BASE.changed(**changes), Path("results"), Path("runs"))


def test_every_mixture_trains_on_the_same_number_of_examples():
    choices = set()
    for one in mixing.cells(request()):
        config = one.config
        plan = build_plan(config, (8000, 8000, 6040))
        batches = sum(len(step) for e in range(config.epochs) for step in plan.steps(e + 1))
        assert batches * config.batch_size == pytest.approx(24_000, rel=0.005), one.name
        assert RunConfig(**config.flat()) == config
        roles = ("sampling", "schedule", "combiner")
        choices.add(tuple(getattr(config, role).name for role in roles))
    assert len(choices) == len(mixing.MIXTURES) >= 8


def test_the_toy_front(tmp_path, monkeypatch, capsys):
    text = call(monkeypatch, capsys, toy_front, "--output", tmp_path, "--preferences", "5")
    kept = json.loads((tmp_path / "toy-front.json").read_text())
    linear, cones, epo = (
        sum(front["non_uniformity"]) / len(front["non_uniformity"]) for front in kept["fronts"]
    )
    assert epo < 1e-3 < linear
    assert epo <= cones < linear
    assert (tmp_path / "toy-front.png").exists()
    assert "EPO" in text


def test_regularised_cells_share_their_pretraining_and_are_kept(reproducing, tmp_path):
    regularise = reproducing("regularisation", *TINY, "--limit", 24, "--seeds", 1)
    rows = ("sts-plain", "sts-simcse", "sts-both", "sts-smart0.3", "sts-smart")
    assert regularise("--rows", *rows)[0] == 0
    results = tmp_path / "regularisation"
    kept = {path.name: path for path in results.iterdir()}
    assert set(kept) == {f"{name}.json" for name in rows} | {  # not sts-smart3 and sts-smart10
        "sts-pretraining.json", "leaks.md", "data.json", "smart-weight-sts.png",
    }  # fmt: skip
    config = json.loads(kept["sts-both.json"].read_text())["config"]
    assert (config["smart_weight"], config["init"]) == ({"sts": 1.0}, None)
    run = json.loads((tmp_path / "runs" / "sts-both-seed11711" / "config.json").read_text())
    assert Path(run["init"]).name == "sts-pretraining-seed11711"
    assert json.loads(kept["sts-smart0.3.json"].read_text())["config"]["smart_weight"] == {
        "sts": 0.3
    }
    text = (tmp_path / "regularisation.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith("| SimCSE + SMART"))
    assert row.endswith("(1) |")
    times = write_times(results)
    assert regularise("--rows", *rows)[0] == 0
    assert times == write_times(results)


BASE_OF_A_PAPER = RunConfig(mode="single", tasks=(), encoder="tiny", linear="mkl")


@pytest.mark.parametrize(
    ("cells", "count"),
    [
        (regularisation.cells(request()), 4 * 3 + 2 * 3),
        *((paper.Experiments(BASE_OF_A_PAPER).every(), None) for paper in (lacon, supercontext)),
        (scl_moo.Experiments(BASE_OF_A_PAPER).every(), 6 * 3 * 6 + 6 * 6 + 10 * 4 + 4),
    ],
    ids=["regularisation", "lacon", "supercontext", "scl_moo"],
)
def test_every_cell_of_a_study_is_another_run(cells, count):
    assert len({one.name for one in cells}) == len(cells)
    assert count in (None, len(cells))
    configs = [one.run_config(seed, Path("runs")) for one in cells for seed in one.seeds]
    assert len({config.digest() for config in configs}) == len(configs)


def test_noise_is_compared_with_its_own_numbers_in_another_order(tmp_path, monkeypatch, capsys):
    flags = ("--encoder", "tiny", "--examples", "24", "--output", tmp_path)
    text = call(monkeypatch, capsys, noise, *flags)
    found = json.loads((tmp_path / "noise.json").read_text())["variants"]
    assert len(found) == 12
    for kept in found.values():
        assert set(kept) == {"both", "first", "second", "cosine_to_start", "share", "likeness"}
    for place in NOISE_PLACES:
        for norm in ("inf", "l2"):
            kept = [found[f"projected, {norm}, {n} steps, {place}"] for n in (1, 3)]
            one, three = (variant["both"] for variant in kept)
            assert three["adversarial"] >= one["adversarial"] > one["random"]
            assert kept[0]["share"] < 0.11
        assert found[f"normalised, 1 steps, {place}"]["cosine_to_start"] > 0.99
    words, embeddings = (
        found[f"normalised, 1 steps, {place}"] for place in ("words", "embeddings")
    )
    assert words["likeness"] < embeddings["likeness"] < 1, "LayerNorm makes noise on words larger"
    assert len(text.splitlines()) >= 2 + 12 * 3


def test_one_mean_a_seed_where_all_have_it():
    several = [{1: 0.1, 2: 0.4, 3: 9.0}, {}, {1: 0.3, 2: 0.0}]
    assert mean_per_seed(several) == pytest.approx({1: 0.2, 2: 0.2})
    assert mean_per_seed([{}, {}]) == {}


def test_more_seeds_than_a_cell_has_of_its_own():
    def seeds(name, own, count):
        return requested_seeds(Cell(name, BASE, own, training), count, find_study("lacon"))

    assert seeds("main", (11711, 2), 1) == (11711,)
    assert seeds("main", (11711, 2), 5) == (11711, 2, 1, 3, 4)
    assert seeds("main", tuple(range(1, 7)), 10) == tuple(range(1, 11))
    assert seeds("sweep-tau-1", (1, 2, 3), 6) == (1, 2, 3)
