"""Studies end to end on the tiny encoder: what they leave, and that finished cells are kept."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from minbert.batching import NOISE_PLACES
from multitask.config import RunConfig
from multitask.schedule import build_plan
from studies import balance, mixing, noise, regularisation, toy_front
from studies.cell_selection import chosen_seeds, first_seeds
from studies.claims import means_by_seed
from studies.seeds import SeedCell


def call(monkeypatch, capsys, module, *argv):
    monkeypatch.setattr(sys, "argv", ["study", *map(str, argv)])
    module.main()
    return capsys.readouterr().out


@pytest.fixture
def mix(tmp_path, monkeypatch, capsys):
    def run(*argv):
        folders = ["--results", tmp_path / "results", "--runs", tmp_path / "runs"]
        tiny = ["--encoder", "tiny", "--limit", "48", "--precision", "fp32"]
        return call(monkeypatch, capsys, mixing, *tiny, *folders, *argv)

    return run


def test_cells_are_kept_and_not_run_again(mix, tmp_path, monkeypatch):
    names = ["round-robin-joint-sum", "annealed-individual-sum", "qqp-first-then-joint-sum"]
    mix("--cells", *names[:2])
    files = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "results").glob("*.json")}
    assert set(files) == {f"{name}.json" for name in names[:2]} | {"data.json"}
    text = mix("--cells", *names)
    for name, time in files.items():
        assert (tmp_path / "results" / name).stat().st_mtime_ns == time
    table = text[text.index("| cell |") :]
    assert all(name in table for name in names)
    assert (tmp_path / "results" / "table.md").read_text().strip() == table.strip()


def test_every_cell_trains_on_the_same_number_of_examples():
    base = RunConfig(mode="multitask", tasks=mixing.TASKS, limit=8000)
    for name, settings in mixing.CELLS.items():
        config = mixing.cell_config(settings, base)
        plan = build_plan(config, (8000, 8000, 6040))
        batches = sum(len(step) for e in range(config.epochs) for step in plan.steps(e + 1))
        assert batches * config.batch_size == pytest.approx(24_000, rel=0.005), name


def test_cells_of_another_configuration_are_not_mixed_in(mix, monkeypatch):
    mix("--cells", "round-robin-joint-sum")
    with pytest.raises(UserError, match="expected a cell of this configuration"):
        mix("--cells", "round-robin-joint-sum", "--seed", "3")


def test_every_cell_is_a_configuration_that_trains():
    base = RunConfig(mode="multitask", tasks=mixing.TASKS, limit=8000)
    choices = set()
    for settings in mixing.CELLS.values():
        config = mixing.cell_config(settings, base)
        names = tuple(getattr(config, role).name for role in ("sampling", "schedule", "combiner"))
        assert RunConfig(**config.flat()) == config
        choices.add(names)
    assert len(choices) == len(mixing.CELLS) >= 8


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


@pytest.fixture
def regularise(tmp_path, monkeypatch, capsys):
    def run(*argv):
        folders = ["--results", tmp_path / "results", "--runs", tmp_path / "runs"]
        tiny = ["--encoder", "tiny", "--limit", "24", "--precision", "fp32"]
        return call(monkeypatch, capsys, regularisation, *tiny, *folders, *argv)

    return run


def test_regularised_cells_share_their_pretraining_and_are_kept(regularise, tmp_path):
    names = ["sts-plain-seed11711", "sts-simcse-seed11711", "sts-both-seed11711"]
    further = ["sts-smart0.3-seed11711", "sts-smart-seed11711"]
    text = regularise("--cells", *names, *further)
    results = tmp_path / "results"
    kept = {path.name for path in results.iterdir()}
    cells = {f"{name}.json" for name in [*names, *further]}
    assert kept == cells | {
        "sts-pretraining-seed11711.json", "table.md", "leaks.md", "data.json",
        "smart-weight-sts.png",
    }  # fmt: skip
    both = json.loads((results / "sts-both-seed11711.json").read_text())["config"]
    assert both["smart_weight"] == {"sts": 1.0}
    assert both["init"] == "sts-pretraining-seed11711"
    assert json.loads((results / "sts-smart0.3-seed11711.json").read_text())["config"][
        "smart_weight"
    ] == {"sts": 0.3}
    rows = [line for line in text.splitlines() if line.startswith("| SimCSE + SMART")]
    assert rows[0].endswith("(1) |")
    times = {path: path.stat().st_mtime_ns for path in results.glob("*-seed*.json")}
    regularise("--cells", *names)
    assert times == {path: path.stat().st_mtime_ns for path in times}


def test_every_cell_of_the_study_is_another_run():
    base = RunConfig(mode="single", tasks=(), limit=3000)
    cells = regularisation.build_cells(base, Path("runs"))
    assert len({cell.name for cell in cells}) == len(cells) == 3 * 4 * 3 + 2 * 3
    assert len({cell.config.digest() for cell in cells}) == len(cells)


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


def test_balance_tells_what_epo_did(tmp_path, monkeypatch, capsys):
    folders = ("--results", tmp_path / "results", "--runs", tmp_path / "runs")
    flags = ("--encoder", "tiny", "--limit", "60", "--epochs", "2", *folders)
    text = call(monkeypatch, capsys, balance, *flags)
    found = json.loads((tmp_path / "results" / "sst-r0.5.json").read_text())
    assert found["steps"] == sum(found["statuses"].values()) == 6
    lines = [
        json.loads(line)
        for file in (tmp_path / "runs").glob("sst-r0.5-*/telemetry.jsonl")
        for line in file.read_text().splitlines()
    ]
    ends = [np.mean([0.5 * one["losses"][f"sst/{n}"] for one in lines]) for n in ("pull", "push")]
    end = found["at_the_end"]
    assert [end["pull"], end["push"]] == pytest.approx(ends, abs=1e-6)
    assert end["apart"] == pytest.approx(abs(ends[0] - ends[1]) / max(ends), abs=1e-4)
    assert sum(found["mean_weights"].values()) == pytest.approx(1)
    assert "EPO's steps" in text
    assert "pull and push, last 6 steps: " in text
    with pytest.raises(UserError, match="limit is 60 there and 61 here"):
        call(monkeypatch, capsys, balance, *flags, "--limit", "61")
    assert (tmp_path / "results" / "sst-r0.5.png").exists()


def test_one_mean_a_seed_where_all_have_it():
    several = [{1: 0.1, 2: 0.4, 3: 9.0}, {}, {1: 0.3, 2: 0.0}]
    assert means_by_seed(several) == pytest.approx([0.2, 0.2])
    assert means_by_seed([{}, {}]) == []


def test_more_seeds_than_a_cell_has_of_its_own():
    assert first_seeds((11711, 2), 1) == (11711,)
    assert first_seeds((11711, 2), 5) == (11711, 2, 1, 3, 4)
    assert first_seeds(tuple(range(1, 7)), 10) == tuple(range(1, 11))
    config = RunConfig(mode="single", tasks=())
    assert len(chosen_seeds(SeedCell("sweep-tau-1", config, (1, 2, 3)), 6)) == 3
    assert len(chosen_seeds(SeedCell("main-sst2-ce", config, (1, 2, 3)), 6)) == 6
