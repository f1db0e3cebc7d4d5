"""BEES' models as configurations, and the command that runs them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cell_files import write_times

import tasks.sample
from common.files import write_json
from multitask.optimizer import AdamW
from multitask.plan import build_plan
from multitask.regularizers import Smart
from multitask.settings.config import RunConfig
from studies.bees.analysis import analysed_training, has_negation, negation_errors
from studies.bees.cells import CURVES, ENSEMBLE, EVERY, ROWS, SEEDS, row_cell
from studies.bees.claims import (
    ERRORS,
    PAIRS,
    claims,
    error_test,
)
from studies.bees.claims import test_of as pair_test
from studies.bees.fairness import (
    chosen_with_other_batches,
    chosen_without,
    last_gain,
    unfair,
)
from studies.bees.study import PRINTED, overall_of
from studies.results import Results
from studies.study import Report, StudyRequest
from tasks.metrics import LEADERBOARD
from tasks.predictions import read_scores, scores_name

BASE = RunConfig(mode="single", tasks=(), data="sample", limit=16, encoder="tiny")
# Table 1's last column; that of M1 to M3 does not follow from the others (63.15, printed 62.7).
OVERALL = {"M7": 72.7, "M8": 74.5, "M9": 74.4, "M10": 73.1}


def test_all_rows_of_the_paper_exist():
    assert list(ROWS) == [f"M{i}" for i in range(1, 19)]
    assert {name for several in ENSEMBLE.values() for name in several} <= set(ROWS)
    for name, printed in OVERALL.items():
        assert PRINTED["rows"][name]["overall"] == printed
        assert overall_of(PRINTED["rows"][name]) == pytest.approx(printed, abs=0.11)
    assert overall_of(PRINTED["ensemble"]) == pytest.approx(79.0, abs=0.11)
    for several in PRINTED["together"]:
        names = several["models"]
        figures = {task: PRINTED["rows"][n][task] for n in names for task in ROWS[n].tasks}
        expected = 63.15 if "M1" in names else several["overall"]
        assert overall_of(figures) == pytest.approx(expected, abs=0.11)
    assert set(PRINTED["rows"]) <= set(EVERY)
    assert {row for several in CURVES.values() for row in several.values()} <= set(EVERY)


def test_rates_chosen_on_held_out_examples_replace_the_papers():
    tuned = BASE.changed(encoder="minilm")
    rates = {name: row_cell(name, tuned).config.optimizer.lr for name in ("M4", "M5", "M6", "M7")}
    assert rates == {"M4": 1e-4, "M5": 5e-5, "M6": 5e-5, "M7": 1e-4}
    rates = {n: row_cell(n, tuned).config.optimizer.lr for n in ("M3", "M6-sigmoid", "M6-equal")}
    assert rates == {"M3": 1e-4, "M6-sigmoid": 2e-6, "M6-equal": 1e-4}
    assert row_cell("M5", tuned, lr=3e-4).config.optimizer.lr == 3e-4


EQUAL = {"M4-equal": 20, "M6-equal": 30}  # epochs


def test_hyper_parameters_are_the_papers():
    for name in EVERY:
        config = row_cell(name, BASE.changed(encoder="tiny")).config
        head_lr = 1e-3 if EVERY[name].until_flat else 2e-5
        assert config.optimizer == AdamW(lr=2e-5, head_lr=head_lr, weight_decay=0.01)
        usual = 8 if config.mode == "multitask" else 16
        assert config.batch_size == (24 if name in EQUAL else usual)
        assert config.epochs == EQUAL.get(name, EVERY[name].epochs)
    assert row_cell("M8", BASE).config.first().epochs == 3
    assert row_cell("M16", BASE).config.regularizers == (Smart({"sts": 1.0}),)
    assert row_cell("M1", BASE).config.freeze_encoder
    projected = Smart({"sts": 3.0}, variant="projected")
    assert row_cell("M17-projected", BASE).config.regularizers == (projected,)


def test_rows_are_different_runs_and_share_their_pretraining():
    cells = [(row_cell(name, BASE), seed) for name in EVERY for seed in SEEDS[:2]]
    configs = [cell.run_config(seed, Path("runs")) for cell, seed in cells]
    keys = [(config.digest(), *config.tasks) for config in configs]
    assert len(set(keys)) == len(keys)
    before = {name: row_cell(name, BASE).base_cell for name in EVERY}
    assert before["M11"] == before["M14"] == replace(before["M14"])
    assert before["M9"] == before["M10"] == before["M18"]
    assert before["T3-sst"].config.pooling == "cls"
    assert before["M11"].config.batch_size == 64
    assert before["M13-mean"] == before["M16-projected"] == before["M17-projected"]
    assert before["M13-mean"].config == before["M13"].config.changed(pooling="mean")
    assert before["M4"] is None


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("name", ["M8", "M9"])
def test_fewer_epochs_keep_the_share_of_the_first_ones(name, epochs):
    config = row_cell(name, BASE, epochs).config
    share, total = {"M8": 3 / 7, "M9": 4 / 10}[name], max(2, epochs)
    first = config.first().epochs
    assert (config.epochs, first) == (total, min(total - 1, max(1, round(share * total))))
    plan = build_plan(config, (40, 120, 30))
    tasks = [{int(task) for step in plan.steps(e + 1) for task in step} for e in range(total)]
    assert tasks[:first] == [{1}] * first
    assert tasks[-1] == {0, 1, 2}


@pytest.fixture
def reproduce(reproducing):
    """On 16 examples of a task."""
    tiny = ("--limit", 16, "--epochs", 1, "--encoder", "tiny", "--precision", "fp32")
    return reproducing("bees", *tiny)


def test_some_rows(reproduce, tmp_path):
    assert reproduce("--rows", "M6", "M13", "T4-simcse", "--seeds", "2")[0] == 0
    kept = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "bees").glob("*.json")}
    assert set(kept) == {"M6", "M13", "T4-simcse", "simcse-sts-cls", "data"}
    for name in set(kept) - {"data"}:
        assert set(kept[name]["seeds"]) == {str(seed) for seed in SEEDS[:2]}
    text = (tmp_path / "bees.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("| M6 |")]
    scores = [100 * found["dev"]["sts"]["pearson"] for found in kept["M6"]["seeds"].values()]
    assert f"75.4 / {sum(scores) / 2:.1f} ± " in row
    assert "--rows M6 M13 T4-simcse" in text
    times = write_times(tmp_path / "bees")
    assert reproduce("--rows", "M6", "M13", "--seeds", "2")[0] == 0
    assert times == write_times(tmp_path / "bees")
    leaks = (tmp_path / "bees" / "leaks.md").read_text()
    assert all(f"| {task} dev |" in leaks for task in ("sst", "qqp", "sts"))
    assert set(json.loads((tmp_path / "bees" / "data.json").read_text())) == {
        f"sts {split}" for split in ("train", "dev", "test")
    }
    # The report is of one configuration, whichever rows are asked for.
    line = "limit is 16 there and 8 here"
    assert line in reproduce("--rows", "M4", "--limit", "8")[1].err


def test_other_data_files_of_the_same_name_are_refused(reproduce, tmp_path):
    folders = [tmp_path / name / "data" for name in ("one", "two")]
    for number, folder in enumerate(folders):
        shutil.copytree(Path(tasks.sample.__file__).parent, folder)
        file = folder / "sts-train.csv"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[: len(lines) - number]))
    assert reproduce("--rows", "M6", "--data", folders[0])[0] == 0
    status, said = reproduce("--rows", "M6", "--data", folders[1])
    assert status == 1
    assert "data.json: sts train: expected the file that the cells here were made from" in said.err
    (tmp_path / "bees" / "M6.json").write_text("{}")
    status, said = reproduce("--rows", "M6", "--data", folders[0])
    assert (status, "M6.json: expected a cell with a config" in said.err) == (1, True)


def test_an_ensemble_is_tested_beside_the_best_run_of_any_row(tmp_path):
    first, name = SEEDS[0], "the ensemble is above all other models"
    results, cells = Results(tmp_path), [row_cell(row, BASE) for row in EVERY]
    report = Report(results, StudyRequest(BASE, tmp_path, tmp_path), cells, ())

    def gains():
        (found,) = (claim for claim in claims(report) if claim.text == name)
        return {test.what: dict(test.differences) for test in found.tests}

    assert set(map(len, gains().values())) == {0}
    members, dev = {}, {}
    for task, rows in ENSEMBLE.items():
        metric = LEADERBOARD[task]
        dev[task] = {metric: 0.6}
        members[task] = {"dev": {f"{row}-seed{first}": {metric: 0.5} for row in rows}}
        for row in rows:
            figures = {t: {LEADERBOARD[t]: 0.5} for t in EVERY[row].tasks}
            results.add(row_cell(row, BASE), first, {"dev": figures}, tmp_path)
    write_json(tmp_path / "ensemble.json", {"members": members, "dev": dev})
    best = {"dev": {"sts": {"pearson": 0.7}}}
    results.add(row_cell("M6", BASE), first, best, tmp_path)
    found = {what.rpartition(", ")[2]: one[first] for what, one in gains().items()}
    assert found == pytest.approx({"sst": 0.1, "qqp": 0.1, "sts": -0.1})


@pytest.mark.slow
def test_all_rows_and_the_ensemble(reproduce, tmp_path):
    assert reproduce()[0] == 0
    ensemble = json.loads((tmp_path / "bees" / "ensemble.json").read_text())
    assert {task: tuple(part["dev"]) for task, part in ensemble["members"].items()} == {
        task: tuple(f"{name}-seed{SEEDS[0]}" for name in names) for task, names in ENSEMBLE.items()
    }
    predictions = {path.name for path in (tmp_path / "runs" / "ensemble" / "predictions").iterdir()}
    assert {f"{stem}-test-output.csv" for stem in ("sst", "para", "sts")} <= predictions
    figures = {path.name for path in (tmp_path / "bees").glob("*.png")}
    assert figures == {
        "smart-weight-sts.png", "smart-weight-sst.png", "confusion.png", "similarities.png"
    }  # fmt: skip
    assert "18 of " in (tmp_path / "bees.md").read_text()


def test_conditions_of_a_fair_test_are_read_from_settings_and_runs(tmp_path):
    base = replace(BASE, encoder="minilm", limit=None)
    request = StudyRequest(base, tmp_path, tmp_path, epochs=3)
    report = Report(Results(tmp_path), request, [row_cell(name, base, 3) for name in EVERY], ())
    start = "SimCSE trains [CLS] of an encoder that averages its tokens"
    assert unfair(report, ("M13", "M6")) == [start]
    assert unfair(report, ("M13-mean", "M6")) == []
    assert unfair(report, ("M17", "M13")) == []  # both start alike
    assert unfair(report, ("M13", "T4-simcse")) == []
    assert unfair(report, ("M6", "M3")) == ["[CLS] of an encoder that averages its tokens"]
    assert unfair(report, ("M12", "M5")) == [start]
    assert "different batch sizes" in unfair(report, ("M4", "M7"))
    assert "different batch sizes" in unfair(report, ("M9", "M10"))  # in a step
    assert unfair(report, ("M6", "M6-sigmoid")) == unfair(report, ("M6-equal", "M7")) == []
    of_all = [row_cell(name, base, 3, 1e-4) for name in EVERY]
    requested = Report(Results(tmp_path), replace(request, lr=1e-4), of_all, ())
    assert unfair(requested, ("M12", "M5")) == [start, "the rate was not tuned for qqp"]
    assert "the rate was not tuned for sts" in unfair(requested, ("M6", "M6-sigmoid"))
    for name, rate in (("M7", 10.0), ("M8", 12.0)):
        stored = {"dev": {"sst": {"accuracy": 0.5}}}
        stored |= {"examples_per_second": rate, "training_seconds": 10.0}
        report.results.add(report.cell(name), 1, stored, tmp_path)
    assert "about 100 training examples against 120" in unfair(report, ("M8", "M7"))


def test_a_method_needs_a_rate_that_was_chosen_with_it(tmp_path):
    base = replace(BASE, encoder="minilm", limit=None)
    request = StudyRequest(base, tmp_path, tmp_path, epochs=3)
    report = Report(Results(tmp_path), request, [row_cell(name, base, 3) for name in EVERY], ())

    def reasons(*rows):
        return [line.removeprefix("the rate of ") for line in chosen_without(report, rows)]

    assert reasons("M11", "M4") == ["M11 was chosen without SimCSE on sst"]
    assert reasons("M18", "M14") == [
        "M18 was chosen without SimCSE on sst, qqp, sts",
        "M14 was chosen without SimCSE on sst",
    ]
    assert reasons("M17", "M13") == ["M17 was chosen without SMART of weight 3"]
    assert reasons("M13", "T4-simcse") == ["T4-simcse was chosen without a sigmoid"]
    assert reasons("M15", "M5") == ["M15 was chosen without SMART of weight 1 and SimCSE on qqp"]
    for rows in (("M13-mean", "M6"), ("M17-projected", "M13-mean"), ("M6", "M6-sigmoid")):
        assert reasons(*rows) == []  # they have their own
    assert reasons("M6-equal", "M7") == []
    line = "the rate of M6-equal was chosen with batches of 16"
    for gain in (-0.1, 0.1):
        for row, score in (("M6-equal", 0.5 + gain), ("M7", 0.5)):
            stored = {"dev": {"sts": {"pearson": score}}}
            report.results.add(report.cell(row), 1, stored, tmp_path)
        assert (line in pair_test(report, "M6-equal", "M7", "sts").reasons) == (gain < 0)
    for row in ("M7", "M4-equal"):  # with the usual batches; with a rate of its own
        assert chosen_with_other_batches(report, row) == []
    batches = replace(report, request=replace(request, changes={"batch_size": 128}))
    assert unfair(batches, ("M6", "M6-sigmoid")) == ["rates were chosen with other batch sizes"]


def test_runs_that_still_gain_in_their_last_epoch_and_random_noise_are_no_fair_test(tmp_path):
    base = replace(BASE, encoder="minilm", limit=None)
    request = StudyRequest(base, tmp_path, tmp_path, epochs=3)
    report = Report(Results(tmp_path), request, [row_cell(name, base, 3) for name in EVERY], ())
    for name, scores in (("M13", (0.8, 0.85, 0.87)), ("M17", (0.7, 0.86, 0.864))):
        history = [{"dev": {"sts": {"pearson": one}, "overall": one}} for one in scores]
        stored = history[-1] | {"history": history}
        report.results.add(report.cell(name), 1, stored, tmp_path)
    assert last_gain(report, "M13", "sts") == pytest.approx(0.02)
    assert last_gain(report, "M13", "overall") == pytest.approx(0.02)
    assert last_gain(report, "M6", "sts") == 0
    found = pair_test(report, "M17", "M13", "sts").reasons
    assert "M13 still gains 2.0 points in its last epoch, on average" in found
    assert not any("M17 still" in one for one in found)
    noise = "SMART's normalised noise acts like random noise"
    assert noise in found
    assert noise not in pair_test(report, "M17", "T4-smart", "sts").reasons
    similarities = ERRORS["predicted similarities are higher than the labels", "Figure 5"]
    of_rows = {row: error_test(report, similarities, row).reasons for row in similarities.rows}
    assert {row: noise in reasons for row, reasons in of_rows.items()} == {
        "M17": True,
        "M17-projected": False,
    }
    assert any(one.startswith("SimCSE trains [CLS]") for one in of_rows["M17"])
    assert of_rows["M17-projected"] == []
    assert noise not in pair_test(report, "M17-projected", "M13-mean", "sts").reasons


def test_claims_are_those_of_the_requested_rows(tmp_path):
    cells = [row_cell(name, BASE) for name in EVERY]

    def tests(*rows):
        request = StudyRequest(BASE, tmp_path, tmp_path, rows=rows or None)
        found = claims(Report(Results(tmp_path), request, cells, ()))
        return [test.what for claim in found for test in claim.tests]

    assert tests("M6", "M13") == ["M13 - M6, sts"]
    errors = sum(len(one.rows) for one in ERRORS.values())
    assert len(tests()) == sum(map(len, PAIRS.values())) + errors + len(LEADERBOARD)
    assert tests("M17") == ["M17, in per cent of the scale"]
    stored = {"dev": {"sts": {"pearson": 0.5}}}
    Results(tmp_path).add(row_cell("M3", BASE), 1, stored, tmp_path)
    assert tests("M6", "M13") == ["M6 - M3, sts", "M13 - M6, sts"]
    assert tests("M1") == []


def test_a_frozen_baseline_trains_until_dev_is_flat_whatever_is_requested():
    config = row_cell("M1", BASE, 3, 1e-4).config
    assert (config.epochs, config.patience, config.optimizer.head_lr) == (60, 5, 1e-3)
    assert row_cell("M3", BASE, 3, 1e-4).config.epochs == 3


def test_errors_are_counted_with_and_without_a_negation():
    negated = has_negation(["It is n't good", "A knot of notes", "Never dull"])
    assert negated.tolist() == [True, False, True]
    targets, predicted = np.array([1, 3, 4]), np.array([3, 3, 4])
    assert negation_errors(targets, predicted, negated) == {
        "negated_count": 2,
        "negated_accuracy": 0.5,
        "other_count": 1,
        "other_accuracy": 1.0,
    }


def test_a_negation_shifts_predictions_only_within_a_class():
    targets = np.array([0, 0, 0, 4, 4, 4])
    negated = np.array([1, 1, 0, 1, 0, 0], bool)
    to_the_middle = np.full(6, 2)  # whatever the text says
    assert negation_errors(targets, to_the_middle, negated)["negation_shift"] == 0
    predicted = np.array([1, 1, 0, 4, 4, 4])
    assert negation_errors(targets, predicted, negated)["negation_shift"] == pytest.approx(2 / 3)


def test_a_run_stores_the_analysis_of_its_errors(tmp_path):
    config = row_cell("M7", BASE, 1).config.changed(seed=1)
    stored = analysed_training(config, tmp_path / "run")
    scores = read_scores(tmp_path / "run" / "predictions" / scores_name("sts", "dev"))
    assert stored["analysis"]["sts"] == pytest.approx(
        {"mean_label": scores.targets.mean(), "mean_prediction": np.mean(scores.values)}
    )
    sst = stored["analysis"]["sst"]
    right = sum(sst[f"{k}_count"] * sst.get(f"{k}_accuracy", 0) for k in ("negated", "other"))
    count = sst["negated_count"] + sst["other_count"]
    assert right / count == pytest.approx(stored["dev"]["sst"]["accuracy"])
