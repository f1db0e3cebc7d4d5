"""The study of affinities: its cells, real gains, rank correlations, and a small run of it."""

import json
from pathlib import Path

import numpy as np
import pytest
from cell_files import keep_seeds

from multitask.settings.config import RunConfig
from multitask.storage.stored_config import without_paths
from studies import affinity, agreement
from studies.affinity import (
    EARLY,
    ESTIMATE,
    ESTIMATORS,
    SEEDS,
    TASKS,
    agreement_rows,
    ceiling_text,
    cells,
    cost_text,
    mean_cosine,
    name_of,
    noise_ceiling,
    page,
    real_gains,
    relative_size,
    subsets,
)
from studies.results import Results
from studies.study import Report, StudyRequest
from tasks import build_task

BASE = RunConfig(mode="single", tasks=(), encoder="tiny")


@pytest.fixture
def request_here(tmp_path):
    return StudyRequest(BASE, tmp_path / "affinity", tmp_path / "runs")


@pytest.fixture
def every(request_here):
    return {one.name: one for one in cells(request_here)}


def test_at_least_forty_different_subsets_of_several_sizes_are_trained(every):
    found = subsets()
    assert len(set(found)) == len(found) >= 40
    assert {len(one) for one in found} == {2, 3, 4, 6, 9}
    assert set(every) == {ESTIMATE, *(name_of(one) for one in found), *(f"1-{t}" for t in TASKS)}
    assert subsets() == found
    for task in TASKS:  # each one with several others
        assert sum(task in one for one in found) >= 8


def test_every_task_takes_as_many_batches_in_every_cell(every):
    for one in every.values():
        config = one.config
        assert config.step_batches == len(config.tasks)
        assert (config.epochs, config.steps_per_epoch, config.batch_size) == (3, 125, 16)
        assert (config.keep, config.drop_leaks, one.seeds) == ("last", True, SEEDS)
    assert every["1-sst"].config.mode == "single"
    assert every[ESTIMATE].config.tasks == TASKS


def gain_of(one, task):
    """An invented gain in points, different for every subset and task."""
    return (len(one) + 0.1 * TASKS.index(task)) * (-1) ** subsets().index(one)


@pytest.fixture
def report(every, request_here):
    """All cells with invented scores; `linear` predicts the real gains, `gram` the opposite."""
    chosen = [*((task,) for task in TASKS), *subsets()]
    folder = request_here.results
    folder.mkdir()
    for one in chosen:
        cell, seeds = every[name_of(one)], {}
        for seed in SEEDS:
            dev = {}
            for task in one:
                metric = build_task(task).kind.main_metric
                gain = gain_of(one, task) if len(one) > 1 else 0
                dev[task] = {metric: 0.5 + 0.001 * (seed % 7) + gain / 100}
            seeds[str(seed)] = {"dev": dev, "training_seconds": 60.0}
        keep_seeds(folder / f"{cell.name}.json", without_paths(cell.config), seeds)
    gains = {name_of(one): {task: gain_of(one, task) for task in one} for one in subsets()}
    opposite = {one: {t: -g for t, g in several.items()} for one, several in gains.items()}
    pairs = [f"{a} and {b}" for i, b in enumerate(TASKS) for a in TASKS[:i]]
    figures = {
        "predicted": {"gram": opposite, "lookahead": gains, "linear": gains},
        EARLY: {"gram": gains, "lookahead": opposite, "linear": gains},
        "conflicts": {pair: {"mean_cosine": k / 100} for k, pair in enumerate(pairs)},
        "sizes": {task: 10 ** (k % 3 + 2) for k, task in enumerate(TASKS)},
        "training_seconds": 100.0,
        "measuring_seconds": 53.0,
    }
    stored = {str(seed): figures for seed in SEEDS}
    keep_seeds(folder / f"{ESTIMATE}.json", without_paths(every[ESTIMATE].config), stored)
    return Report(Results(folder), request_here, list(every.values()), ())


def test_real_gains_are_differences_from_the_single_task_in_points(report):
    found = real_gains(report)
    assert set(found) == set(subsets())
    for one, gains in found.items():
        assert gains == pytest.approx({task: gain_of(one, task) for task in one})


def test_the_page_ranks_predictors_and_names_the_cost(report, monkeypatch):
    monkeypatch.setattr(agreement, "DRAWS", 50)
    rows = {row[0]: row[1:] for row in agreement_rows(report)}
    assert rows["linear"][0] == "1.00 (1.00 to 1.00)"
    assert rows["gram"][0] == "-1.00 (-1.00 to -1.00)"
    assert rows["lookahead"][1] == "1.00 (1.00 to 1.00)"
    assert rows["gram"][2].partition(" ")[0] == "-" + rows["linear"][2].partition(" ")[0]
    assert rows["gram, first epoch"][0] == "1.00 (1.00 to 1.00)"
    assert rows["lookahead, first epoch"][0] == "-1.00 (-1.00 to -1.00)"
    assert list(rows)[6:8] == ["mean cosine of a run", "task size"]
    assert rows["real gain of one seed, the first"][0].startswith("1.00")
    trained = len(subsets()) + len(TASKS)
    assert f"3 minutes per seed, {153 / 60 / trained:.1%} of the {trained} minutes" in cost_text(
        report
    )
    text = "\n".join(page(report))
    assert f"{len(subsets())} of {len(subsets())} subsets are finished" in text


def test_the_page_of_some_cells_leaves_out_subsets_without_their_single_tasks(report, monkeypatch):
    monkeypatch.setattr(agreement, "DRAWS", 50)
    for file in report.results.folder.glob("1-*.json"):
        if file.stem not in ("1-sst", "1-qqp", "1-sts"):
            file.unlink()
    few = Report(Results(report.results.folder), report.request, report.cells, ())
    assert 1 < len(real_gains(few)) < len(subsets())
    assert "subsets are finished" in "\n".join(page(few))


def with_noise(report, *, noise):
    """Give the seeds of subsets, not of single tasks, scores that differ by `noise` points."""
    for file in report.results.folder.glob("[2-9]-*.json"):
        seeds = json.loads(file.read_text())["seeds"]
        for figures, sign in zip(seeds.values(), (-1, 0, 1), strict=True):
            for scores in figures["dev"].values():
                for metric in scores:
                    scores[metric] += sign * noise / 100
        config = json.loads(file.read_text())["config"]
        keep_seeds(file, config, seeds)
    return Report(Results(report.results.folder), report.request, report.cells, ())


def test_noise_of_seeds_lowers_the_best_possible_correlation(report, every, request_here):
    assert noise_ceiling(report) == pytest.approx(1)
    gains = [gain for one in real_gains(report).values() for gain in one.values()]
    noisy = with_noise(report, noise=2)  # its variance over three seeds is 2^2
    expected = np.sqrt(1 - 2**2 / 3 / np.var(gains, ddof=1))
    assert 0.5 < noise_ceiling(noisy) < 0.99
    assert noise_ceiling(noisy) == pytest.approx(expected)
    assert f"about {expected:.2f} with them" in ceiling_text(noisy)
    nothing = Results(request_here.results / "other")
    assert not ceiling_text(Report(nothing, request_here, list(every.values()), ()))


def test_naive_predictors_are_means_over_the_other_tasks():
    conflicts = {"a and b": {"mean_cosine": 0.2}, "b and c": {"mean_cosine": 0.4}}
    figures = {"conflicts": conflicts, "sizes": {"a": 100, "b": 50, "c": 300}}
    assert mean_cosine(figures, ("a", "b", "c"), "b") == pytest.approx(0.3)
    assert relative_size(figures, ("a", "b", "c"), "b") == pytest.approx(np.log(200 / 50))


def test_a_page_without_enough_cells_says_so(every, request_here):
    found = page(Report(Results(request_here.results), request_here, list(every.values()), ()))
    assert "not finished yet" in found[-1]


def test_three_tasks_of_the_sample_are_measured_trained_and_compared(
    reproducing, monkeypatch, tmp_path
):
    monkeypatch.setattr(affinity, "TASKS", ("sst", "qqp", "sts"))
    monkeypatch.setattr(affinity, "CHOSEN", {2: 2, 3: 1})
    monkeypatch.setattr(agreement, "DRAWS", 20)
    flags = ("--encoder", "tiny", "--precision", "fp32", "--epochs", 1, "--limit", 64, "--seeds", 1)
    status, said = reproducing("affinity", *flags)()
    assert status == 0, said.err
    folder = Path(tmp_path / "affinity")
    stored = json.loads((folder / f"{ESTIMATE}.json").read_text())["seeds"][str(SEEDS[0])]
    names = {name_of(one) for one in affinity.subsets()}
    assert {name for name in ESTIMATORS if set(stored["predicted"][name]) == names} == set(
        ESTIMATORS
    )
    assert stored["sizes"]["sst"] > 64
    assert stored[EARLY] == stored["predicted"]  # there is one epoch
    text = folder.with_suffix(".md").read_text()
    assert "3 of 3 subsets are finished" in text
    assert text.count("| sst + qqp + sts |") == 3
    assert not [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert reproducing("affinity", *flags)("--stored-only")[0] == 0
