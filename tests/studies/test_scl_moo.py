"""SCL-MOO's cells as configurations, the command that runs them, and its tables."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest
from cell_files import few_words, keep_seeds, write_times

from common.errors import UserError
from multitask.settings.config import RunConfig
from studies import runner
from studies.claims import NOT_LEARNT, verdict_table
from studies.data_records import record_examples
from studies.fairness import MAJORITY, learnt_by, matthews_from_f1
from studies.results import Results
from studies.runner import run_cells
from studies.scl_moo.cells import (
    BALANCED,
    CONTROLS,
    GRID,
    METHODS,
    NOT_TUNED,
    SEEDS,
    SHOTS,
    SWEEP_SEEDS,
    TASKS,
    TUNED_SHOTS,
    Experiments,
)
from studies.scl_moo.claims import effect, method_claims, sweep_claims
from studies.scl_moo.tables import (
    Accuracies,
    data_notice,
    data_table,
    few_shot_table,
    full_table,
)
from studies.study import printed
from tasks.contrastive import LS, ContrastiveEPO
from tasks.protocols import FewShots

CELLS = Experiments(RunConfig(mode="single", tasks=(), encoder="tiny"))


def test_a_sweep_at_its_own_value_is_the_main_cell():
    assert CELLS.sweep("scl_weight", 0.3, "epo") == CELLS.few_shot("sst2", 50, "epo")


def test_settings_are_the_papers():
    for one in CELLS.every():
        config = one.config
        assert (config.batch_size, config.pooling) == (16, "cls")
        (task,) = config.tasks
        joint = config.tasks[task].build().joint
        assert joint == (task in ("qnli", "mrpc", "rte", "mnli"))
        balanced = one.name.endswith(BALANCED) or isinstance(config.objective, LS | ContrastiveEPO)
        assert config.class_balanced == balanced
        if isinstance(config.protocol, FewShots):
            assert (config.epochs, config.keep, config.evaluate_every) == (15, "last", 15)
    paper = printed("scl_moo")
    for table in (paper["full"], *paper["few_shot"].values()):
        assert all(set(found) == set(METHODS) for found in table.values())


@pytest.fixture
def data(tmp_path):
    return few_words(tmp_path / "data", "SST-2", "RTE", train=60, dev=24)


@pytest.fixture
def reproduce(reproducing, data):
    short = ("--encoder", "tiny", "--epochs", 2)
    return reproducing("scl-moo", "--data", data, *short)


def test_some_cells(reproduce, tmp_path):
    rows = ("few-shot-sst2-20", "few-shot-mnli-20-ce", "full-rte-epo", "sweep-tau-0.5-ls")
    rows += ("few-shot-sst2-50-epo", "parameters-sst2-epo")
    status, said = reproduce("--rows", *rows, "--seeds", "2")
    assert status == 0, said.err
    assert "mnli is skipped: " in said.out
    results = tmp_path / "scl_moo"
    names = [f"few-shot-sst2-20-{m}" for m in METHODS | CONTROLS] + [*rows[2:]]
    ids = {"ids-sst2-few-shot", "ids-rte-held-out"}
    assert {path.stem for path in results.glob("*.json")} == set(names) | ids
    drawn = json.loads((results / "ids-sst2-few-shot.json").read_text())
    counts = {key: len(found.split()) for key, found in drawn.items() if "hash" not in key}
    assert len(drawn) == 2 * len(counts)
    assert counts == {
        "dev": 12, "test": 12, "train, 20, seed 1": 20, "train, 20, seed 2": 20,
        "train, 50, seed 1": 50, "train, 50, seed 2": 50,
    }  # fmt: skip
    assert not set(drawn["dev"].split()) & set(drawn["test"].split())
    found = json.loads((results / "full-rte-epo.json").read_text())
    assert set(found["seeds"]) == {"1", "2"}
    assert set(found["seeds"]["1"]["mean_weights"]) == {
        f"rte/{name}" for name in ("cross_entropy", "pull", "push")
    }
    stay = {path.name for path in (tmp_path / "runs").iterdir() if path.suffix != ".lock"}
    assert {name.rpartition("-")[0] for name in stay} == {f"map-{m}" for m in ("ls", "epo", "scl")}
    assert (results / "maps.png").exists()
    text = (tmp_path / "scl_moo.md").read_text()
    accuracies = [found["seeds"][s]["test"]["rte"]["accuracy"] for s in ("1", "2")]
    assert f"76.93 ± 1.3 / {100 * np.mean(accuracies):.1f} ± " in text
    assert "| rte | " in text
    spaces = [line for line in text.splitlines() if line.startswith("| sst2 | ") and " (2)" in line]
    assert [line.split(" | ")[1] for line in spaces[-2:]] == ["representation", "parameters"]
    assert "not tested fairly" in text
    for name, caption in {
        "maps": "t-SNE of test embeddings",
        "shots": "SST-2 by the number",
    }.items():
        assert f"\n\n![{name}](scl_moo/{name}.png)\n\n{caption}" in text
    times = write_times(results)
    assert reproduce("--rows", *rows, "--seeds", "2")[0] == 0
    assert times == write_times(results)
    # A further seed is added to what is there.
    assert reproduce("--rows", "full-rte-epo", "--seeds", "3")[0] == 0
    again = json.loads((results / "full-rte-epo.json").read_text())["seeds"]
    assert {seed: again[seed] for seed in ("1", "2")} == found["seeds"]
    assert set(again) == {"1", "2", "3"}


def test_examples_other_than_the_recorded_ones_are_refused(small, tmp_path):
    config = replace(small.config, seed=1)
    folders = tmp_path / "results", tmp_path / "runs"
    for folder in folders:
        folder.mkdir()
    record_examples(config, *folders)
    file = tmp_path / "results/ids-sst2-few-shot.json"
    kept = file.read_bytes()
    record_examples(config, *folders)
    assert file.read_bytes() == kept
    content = json.loads(kept)
    for key in ("dev", "dev, hash"):
        file.write_text(json.dumps(content | {key: "others"}))
        with pytest.raises(UserError, match=f"{key}: expected these examples, found others"):
            record_examples(config, *folders)


def invented(results, better):
    """Kept cells of two tasks: EPO better than CE by `better`, the others like it."""
    draw = np.random.default_rng(0)
    for task in ("sst2", "rte"):
        for shots in SHOTS:
            base = {seed: draw.uniform(0.6, 0.7) for seed in SEEDS}
            for method in METHODS:
                one = CELLS.few_shot(task, shots, method)
                gain = better if method == "epo" else 0
                figures = {
                    str(s): {"test": {task: {"accuracy": v + gain + draw.normal(0, 0.01)}},
                             "combiner_steps": {"balance": 3, "descent": 1},
                             "mean_weights": {f"{task}/pull": 0.1, f"{task}/push": 0.2}}
                    for s, v in base.items()
                }  # fmt: skip
                keep_seeds(results / f"{one.name}.json", one.config.to_json(), figures)


@pytest.mark.parametrize("better", [0.05, -0.05])
def test_claims_are_tested(tmp_path, monkeypatch, better):
    invented(tmp_path, better)
    results = Accuracies(CELLS, Results(tmp_path))
    found, full = results.pairs("epo", "ce")
    assert (len(found), full) == (2 * len(SEEDS), {})
    assert np.mean(list(found.values())) == pytest.approx(better, abs=0.01)
    few, whole, falls = method_claims(results)
    assert [test.seeds for test in falls.tests if "balanced" not in test.what] == [len(SEEDS)] * 2
    assert "CE + EPO - CE on sst2, gain with 20 - with 100" in [test.what for test in falls.tests]
    fair = replace(few, tests=[replace(test, reasons=()) for test in few.tests])
    verdicts = {row[0].split(": ")[1]: row[1] for row in verdict_table([fair])[1]}
    expected = "holds" if better > 0 else "does not hold"
    both = "on sst2, rte (rte not in the paper's table) (Table 2)"  # reasons are left out here
    assert verdicts[f"CE + EPO - CE {both}"] == expected
    assert verdicts[f"CE + LS - CE {both}"] == "not shown"
    assert {row[1] for row in verdict_table([few])[1]} == {"not tested fairly"}
    balance = "only LS and EPO have class-balanced batches"
    *run, absent = few.tests
    assert [balance in test.reasons for test in run] == [True, True, False, False] * 2
    assert (absent.what, absent.seeds) == ("on qnli, mnli", 0)
    assert [test.seeds for test in whole.tests] == [0] * len(whole.tests)
    assert full_table(results)[1][0][-1].endswith(" / ")
    elsewhere = replace(CELLS, base=CELLS.base.changed(data=str(tmp_path)))
    without_data = Accuracies(elsewhere, results.stored)
    assert data_table(without_data)[1] == []
    assert data_notice(without_data).startswith(" The files of sst2, rte are not here")
    monkeypatch.setitem(MAJORITY, "rte", 1.0)
    few, *_ = method_claims(results)
    with_pairs = [test for test in few.tests if test.seeds]
    tasks = {test.what.rpartition(" on ")[2]: NOT_LEARNT in test.reasons for test in with_pairs}
    assert tasks == {"sst2": False, "rte (not in the paper's table)": True}
    _, rows = few_shot_table(results)
    assert len(rows) == len(SHOTS) * len(METHODS | CONTROLS)
    assert not results.swept()
    assert rows[0][2].startswith("59.72 ± 5.9 / ")
    assert rows[0][2 + TASKS.index("mrpc")] == ""


@pytest.mark.parametrize(
    ("counts", "expected"), [((40, 30, 20, 10), {"qqp"}), ((25, 25, 25, 25), set())]
)
def test_a_correlation_that_is_not_stored_follows_from_f1_and_class_counts(
    tmp_path, counts, expected
):
    tn, tp, fp, fn = counts
    one = CELLS.few_shot("sst2", 20, "ls")
    one = replace(one, config=one.config.changed(tasks=("qqp",)))
    stored = {
        "test": {"qqp": {"accuracy": (tn + tp) / 100, "f1": 0.0}},
        "test_counts": [tn + fp, tp + fn],
        "f1_by_class": [round(2 * n / (2 * n + fp + fn), 6) for n in (tn, tp)],
    }
    keep_seeds(tmp_path / f"{one.name}.json", one.config.to_json(), {"1": stored, "2": stored})
    results = Results(tmp_path)
    accuracies = results.values(one, "test", "qqp", "accuracy")
    truth, said = [0] * (tn + fp) + [1] * (tp + fn), [0] * tn + [1] * fp + [1] * tp + [0] * fn
    correlation = np.corrcoef(truth, said)[0, 1]
    found = matthews_from_f1(results, one, accuracies)
    assert found == pytest.approx({1: correlation, 2: correlation})
    assert learnt_by(results, [one], lambda _: {1: 0.5, 2: 0.5}) == expected


def test_settings_hold_for_other_numbers_of_examples_until_these_are_tuned():
    tuned = {
        f"few-shot-sst2-{TUNED_SHOTS}-ce": {"lr": 1e-4},
        f"few-shot-sst2-{TUNED_SHOTS}-ce-balanced": {"lr": 2e-4},
        "few-shot-sst2-20-ce": {"lr": 3e-4},
    }
    cells = replace(CELLS, tuned=tuned)

    def rate(shots, method):
        return cells.few_shot("sst2", shots, method).config.optimizer.lr

    assert [rate(shots, "ce") for shots in (20, 50, 100)] == [3e-4, 1e-4, 1e-4]
    assert [rate(shots, "ce-balanced") for shots in (20, 50, 100)] == [2e-4] * 3
    assert rate(20, "epo") == CELLS.base.optimizer.lr


@pytest.mark.parametrize("tested", [(TUNED_SHOTS,), (20, TUNED_SHOTS)])
def test_only_the_numbers_of_examples_that_settings_were_chosen_with_test_a_claim(tmp_path, tested):
    """Others would say how well settings carry over."""
    names = [f"few-shot-sst2-{shots}-{method}" for shots in tested for method in ("epo", "ce")]
    tuned = {name: {"lr": 1e-4} for name in [*names, "few-shot-sst2-100-ls"]}
    results = Accuracies(replace(CELLS, tuned=tuned), Results(tmp_path))
    assert results.tested_shots("sst2", "epo", "ce") == tested
    assert results.tested_shots("sst2", "ls", "scl") == (100,)  # one of them has its own
    assert results.tested_shots("rte", "epo", "ce") == SHOTS
    for shots, better in zip(SHOTS, (0.3, 0.1, 0.2), strict=True):
        for method, accuracy in (("ce", 0.5), ("epo", 0.5 + better)):
            for task in ("sst2", "rte"):
                one = results.cells.few_shot(task, shots, method)
                figures = {"1": {"test": {task: {"accuracy": accuracy}}}}
                keep_seeds(tmp_path / f"{one.name}.json", one.config.to_json(), figures)
    found, _ = results.pairs("epo", "ce")
    of_sst2 = {(TUNED_SHOTS,): 0.1, (20, TUNED_SHOTS): 0.2}[tested]
    assert found == pytest.approx({("sst2", 1): of_sst2, ("rte", 1): 0.2})
    assert results.ends("sst2", "epo", "ce") == (20, 50 if len(tested) > 1 else 100)
    assert results.ends("rte", "epo", "ce") == (20, 100)
    assert results.gain("sst2", 20, "epo", "ce") == pytest.approx({1: 0.3})


def swept(cells, folder, points):
    """Keep sweeps in which accuracy changes by so many points from one value to the next.

    It does not change at the default value, which is one cell for all settings.
    """
    for (setting, method), change in points.items():
        for place, value in enumerate(GRID):
            one = cells.sweep(setting, value, method)
            gain = change * (place - (0 if setting == "scl_preference" else 1)) / 100
            figures = {
                "dev": {"sst2": {"accuracy": 0.5 - gain}},  # has no part in the tests
                "test": {"sst2": {"accuracy": 0.7 + gain}},
            }
            seeds = {str(seed): figures for seed in SWEEP_SEEDS}
            keep_seeds(folder / f"{one.name}.json", one.config.to_json(), seeds)
    results = Accuracies(cells, Results(folder))
    return [test for one in sweep_claims(results) for test in one.tests]


POINTS = {
    ("scl_preference", "ls"): -2,
    ("scl_preference", "epo"): 3,
    ("scl_temperature", "scl"): 1,
    ("scl_temperature", "scl-balanced"): 2,
    ("scl_temperature", "ls"): -3,
    ("scl_temperature", "epo"): 0,
    ("scl_weight", "scl"): 1,
    ("scl_weight", "scl-balanced"): -1,
    ("scl_weight", "ls"): -4,
    ("scl_weight", "epo"): 2,
}


def test_single_settings_are_tested_as_in_the_ablation(tmp_path):
    tests = swept(CELLS, tmp_path, POINTS)
    found = {test.what: 100 * np.mean([*test.differences.values()]) for test in tests}
    assert found == pytest.approx(
        {
            "CE + LS, r1 0.1 - 0.9": 8,
            "CE + EPO, r1 0.1 - 0.9": -12,
            "CE + SCL - CE + LS, effect of tau": 4 - 12,
            "CE + SCL - CE + EPO, effect of tau": 4 - 0,
            "CE + SCL, balanced - CE + LS, effect of tau": 8 - 12,
            "CE + SCL, balanced - CE + EPO, effect of tau": 8 - 0,
            "CE + LS, lambda 0.1 - 0.9": 16,
            "CE + EPO, lambda 0.1 - 0.9": -8,
            "CE + LS - CE + SCL, gain of lambda 0.1 over 0.9": 16 + 4,
            "CE + LS - CE + SCL, balanced, gain of lambda 0.1 over 0.9": 16 - 4,
            "CE + EPO - CE + SCL, gain of lambda 0.1 over 0.9": -8 + 4,
            "CE + EPO - CE + SCL, balanced, gain of lambda 0.1 over 0.9": -8 - 4,
        }
    )
    for test in tests:
        assert NOT_TUNED in test.reasons
        unlike = "only LS and EPO have class-balanced batches" in test.reasons
        assert unlike == ("CE + SCL" in test.what and "balanced" not in test.what)
        same = "best and worst values are chosen by the same seeds" in test.reasons
        assert same == ("effect of tau" in test.what)


def test_the_effect_of_a_setting_is_measured_on_other_seeds_than_its_best_value(tmp_path):
    """Each seed has another best temperature: it is the worst one of the other seeds."""
    for place, value in enumerate(GRID):
        one = CELLS.sweep("scl_temperature", value, "ls")
        seeds = {
            str(seed): {"test": {"sst2": {"accuracy": 0.7 + 0.1 * (seed == SWEEP_SEEDS[place])}}}
            for seed in SWEEP_SEEDS
        }
        keep_seeds(tmp_path / f"{one.name}.json", one.config.to_json(), seeds)
    found = effect(Accuracies(CELLS, Results(tmp_path)), "scl_temperature", "ls")
    assert found == pytest.approx(dict.fromkeys(SWEEP_SEEDS, -0.1))


# Runs of several workers


@pytest.fixture
def small(data):
    """Return a cell of a tiny encoder with 20 examples."""
    cells = Experiments(replace(CELLS.base, data=str(data)), epochs=1)
    return cells.few_shot("sst2", 20, "ls", (1, 2))


def test_workers_share_the_seeds_of_a_cell(small, tmp_path, monkeypatch):
    """Each takes what the other is not at: together they take half the time."""
    one = replace(small, seeds=(1, 2, 3, 4))
    both_started, plain, begun = Barrier(2, timeout=600), runner.complete, []

    def count(config, *args, **settings):
        begun.append(config.seed)
        if len(begun) <= 2:
            both_started.wait()  # or one of them would wait here for the other in vain
        return plain(config, *args, **settings)

    monkeypatch.setattr(runner, "complete", count)
    with ThreadPoolExecutor(2) as pool:
        results = [Results(tmp_path / "results") for _ in range(2)]
        works = [pool.submit(run_cells, [one], each, tmp_path / "runs") for each in results]
        for work in works:
            work.result()
    assert sorted(begun) == [1, 2, 3, 4]
    assert set(Results(tmp_path / "results").figures_by_seed(one)) == {1, 2, 3, 4}
