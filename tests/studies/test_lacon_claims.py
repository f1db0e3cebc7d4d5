"""LaCon's claims and tables, from invented cells in which every method has a gain of its own."""

from dataclasses import replace
from statistics import fmean

import pytest
from cell_files import keep_seeds
from sklearn.metrics import f1_score

from multitask.settings.config import RunConfig
from studies.claims import verdict_table
from studies.lacon.cells import SHOTS, Experiments
from studies.lacon.claims import (
    class_claims,
    few_shot_claims,
    imbalance_claims,
    method_claims,
    own_claims,
    part_claims,
    setting_claims,
)
from studies.lacon.tables import (
    Scores,
    ablation_table,
    always,
    by_class_table,
    data_table,
    few_shot_table,
    main_table,
    sweep_table,
)
from studies.results import Results
from studies.study import printed

BASE = RunConfig(mode="single", tasks=(), encoder="tiny")
CELLS = Experiments(BASE.changed(limit=200))
MAIN = {"ce": 0, "leam": 1, "lsan": 2, "cl": 3, "scl": 4, "lacon": 6, "lacon-fusion": 9}
MAIN |= {"ce-mean": 5, "lacon-mean": 7}
LESS = {"single-head": 5, "no-icl": 1, "no-lcl": 3.5, "no-ler": 4, "no-projection": 2}
LESS |= {"icl-single": 0, "icl": 0, "lcl": 0, "projection": -1.5}
FEW = {"ce": {}, "lacon": {10: 9.5, 20: 2, 100: 1}, "names": {20: 5}}
BY_COUNT = {"ce": lambda count: 0, "scl": lambda count: 1, "lacon-fusion": lambda count: count}


def per_cent_more(name, method):
    """What an invented cell has more than plain cross-entropy."""
    kind, _, number = name.split("-")[:3]
    if kind == "main":
        return MAIN[method]
    if kind == "ablation":
        return LESS[method]
    if kind == "few":
        return FEW[method].get(int(name.split("-")[3]), 0)
    if kind == "classes":
        return BY_COUNT[method](int(number))
    return (3 if int(number) > 1 else 30) if method == "lacon" else 0


def invented(folder, sign=1):
    """Kept cells of four tasks, each method and part with a gain of its own."""
    for one in CELLS.every():
        (task,) = one.config.tasks
        if task not in ("cola", "rte", "sst2", "trec"):
            continue
        parts = {"main": 2, "ablation": 2, "few": 4, "imbalanced": 3, "classes": 3}
        words = one.name.split("-")
        method = "-".join(words[parts.get(words[0], 4) :])
        gain = sign * per_cent_more(one.name, method) / 100
        figures = {}
        for seed in one.seeds:
            value = 0.6 + seed / 100 + gain * (1 + (seed - 3.5) / 1e4)  # no two gains are equal
            classes = {
                "f1_by_class": [0.2 + sign * 0.1 * (gain != 0), 0.8 + sign * 0.04 * (gain != 0)],
                "training_counts": [32, 320],
                "test_counts": [20] * 5,
            }
            found = {"accuracy": value, "matthews": value - 0.3}
            figures[str(seed)] = {"test": {task: found}} | classes
        keep_seeds(folder / f"{one.name}.json", one.config.to_json(), figures)


CLAIMS = {
    method_claims: {
        **{f"LaCon-vanilla - {title}": 6 - gain for title, gain in zip(
            ("CE", "LEAM", "LSAN", "CE + CL", "CE + SCL"), range(5), strict=True)},
        **{f"LaCon-fusion - {title}": 9 - gain for title, gain in zip(
            ("CE", "LEAM", "LSAN", "CE + CL", "CE + SCL"), range(5), strict=True)},
        "LaCon-fusion - LaCon-vanilla": 3,
    },
    own_claims: {
        "LEAM - CE at the mean": -4,
        "LSAN - CE at the mean": -3,
        "LaCon-fusion - CE at the mean": 4,
        "LaCon-vanilla at the mean - CE at the mean": 2,
        "LaCon-fusion - LaCon-vanilla at the mean": 2,
        "few-shot: labels begin at names - at random": 3,
    },
    part_claims: {
        "LaCon - LaCon with one head": 1,
        "LaCon - LaCon without ICL": 5,
        "LaCon - LaCon without LCL": 2.5,
        "LaCon - LaCon without LER": 2,
        "LaCon - LaCon without projection head": 4,
        "LaCon without LCL - without ICL": 2.5,
        "LaCon without LER - without ICL": 3,
        "LaCon - CE behind the projection head": 7.5,
        "CE - CE behind the projection head": 1.5,
    },
    few_shot_claims: {
        "few-shot, 20 examples per class: LaCon - CE": 2,
        "few-shot, 10 examples per class: LaCon - CE": 9.5,
        "few-shot, 50 examples per class: LaCon - CE": 0,
        "few-shot, 100 examples per class: LaCon - CE": 1,
        "few-shot: gain with 10 - with 100 examples per class": 8.5,
    },
    imbalance_claims: {
        "imbalance: LaCon - CE": 3,
        "imbalance, F1 of the minority: LaCon - CE": 10,
        "imbalance, F1 of the majority: LaCon - CE": 4,
        "imbalance, F1: gain of the minority - of the majority": 6,
    },
    class_claims: {
        "2 to 6 classes: LaCon-fusion - CE": (2 + 3 + 4 + 5 + 9) / 5,
        "2 to 6 classes: LaCon-fusion - CE + SCL": (1 + 2 + 3 + 4 + 5) / 5,
        "CE: 2 - 6 classes": 0,
        "CE + SCL: 2 - 6 classes": 1 - 4,
        "LaCon-fusion: 2 - 6 classes": 2 - 9,
    },
    setting_claims: {  # means of RTE, where one head and no regulariser are ablations, and SST-2
        "tau: 0.1 - 0.5": 6,
        "heads: 6 - 1": (6 + (6 - 5)) / 2,
        "heads: 6 - 48": 6,
        "lambda: 0.5 - 0": (6 + (6 - 4)) / 2,
        "lambda: 0.5 - 1": 6,
    },
}  # fmt: skip


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_claims_are_tested(tmp_path, claim, sign):
    invented(tmp_path, sign)
    found = claim(Scores(CELLS, Results(tmp_path)))
    run = [test for test in found.tests if test.differences]
    names = [test.what.partition(" on ")[0] for test in run]
    gains = [100 * fmean(test.differences.values()) for test in run]
    means = dict(zip(names, gains, strict=True))
    expected = {what: sign * gain for what, gain in CLAIMS[claim].items()}
    assert means == pytest.approx(expected, abs=0.011)
    fair = replace(found, tests=[replace(test, reasons=()) for test in run])
    verdicts = {row[1] for row in verdict_table([fair])[1]}
    assert ("holds" if sign > 0 else "does not hold") in verdicts
    assert {row[1] for row in verdict_table([found])[1]} == {"not tested fairly"}
    assert "200 examples per class" in found.tests[0].reasons
    if claim in (imbalance_claims, class_claims):  # ratios and classes are no pairs of their own
        pairs = {len(test.differences) for test in run}
        assert pairs == ({18} if claim is imbalance_claims else {6})


def few_shot_reason(cells, folder):
    """Return the tests whose settings were chosen with 20 examples; all cells have a run."""
    for shots in SHOTS:
        for method in ("ce", "lacon"):
            one = cells.few_shot("sst2", shots, method)
            figures = {"1": {"test": {"sst2": {"accuracy": 0.8}}}}
            keep_seeds(folder / f"{one.name}.json", one.config.to_json(), figures)
    found = few_shot_claims(Scores(cells, Results(folder)))
    reason = "the settings were chosen with 20 examples per class"
    return {test.what.partition(" on ")[0] for test in found.tests if reason in test.reasons}


@pytest.mark.parametrize(
    ("chosen", "others"),
    [(("20-lacon",), (10, 50, 100)), (("20-ce", "20-lacon", "100-ce", "100-lacon"), (10, 50))],
)
def test_settings_chosen_with_20_examples_are_no_fair_test_of_other_numbers(
    tmp_path, chosen, others
):
    cells = replace(CELLS, tuned={f"few-shot-sst2-{name}": {"lr": 1e-4} for name in chosen})
    assert few_shot_reason(cells, tmp_path) == {
        *(f"few-shot, {count} examples per class: LaCon - CE" for count in others),
        "few-shot: gain with 10 - with 100 examples per class",
    }


def test_a_number_of_examples_has_the_settings_that_were_chosen_with_it():
    tuned = {"few-shot-sst2-20-lacon": {"lr": 3e-4}, "few-shot-sst2-100-lacon": {"lr": 3e-5}}
    cells = replace(CELLS, tuned=tuned)
    found = {s: cells.few_shot("sst2", s, "lacon").config.optimizer.lr for s in SHOTS}
    assert found == {10: 3e-4, 20: 3e-4, 50: 3e-4, 100: 3e-5}
    assert cells.few_shot("sst2", 100, "names").config.optimizer.lr == 3e-5
    assert cells.few_shot("sst2", 100, "ce").config.optimizer.lr == CELLS.lr
    names = {one.cell.name for one in cells.searches if one.cell.name.startswith("few-shot-sst2")}
    assert names == {f"few-shot-sst2-{s}-{m}" for s in SHOTS for m in ("ce", "lacon")}


def test_tables_of_kept_cells(tmp_path):
    invented(tmp_path)
    results = Scores(CELLS, Results(tmp_path))
    header, rows = main_table(results)
    assert header[1:] == ["sst2", "cola", "rte", "trec"]
    assert rows[0][2] == "60.9 ± 0.8 / 33.5 ± 1.9 (6)", "CoLA is judged by Matthews' correlation"
    assert rows[0][3] == "67.3 ± 1.9 / 63.5 ± 1.9 (6)"
    assert rows[-3][:2] == ["LaCon-vanilla at the mean", " / 70.5 ± 1.9 (6)"]
    best = ["91.4 ± 0.3 / 67.5 ± 1.9 (6)", "62.3 ± 0.6 / 37.5 ± 1.9 (6)"]  # CE + SCL, here
    assert rows[-2][:3] == ["the best of the five rivals", *best]
    assert rows[-1] == ["always test's most frequent class", "20.0", "0.0", "20.0", "20.0"]
    assert [row[:2] for row in few_shot_table(results)[1]] == [
        *(["sst2", shots] for shots in ("10", "20", "50", "100")),
        ["rte", "20"],
    ]
    assert few_shot_table(results)[1][-1][2:4] == [
        "54.0 / 65.5 ± 3.0 (10)",
        "60.0 / 67.5 ± 3.0 (10)",
    ]
    assert data_table(results)[1][1] == ["cola", "8.5K", "1K", "352", "100"]
    assert len(ablation_table(results)[1]) == len(printed("lacon")["ablation"])
    by_class = {(row[0], row[1]): row[2:] for row in by_class_table(results)[1]}
    assert by_class["cola", "CE"] == ["2.3 / 20.0 ± 0.0 (6)", "81.3 / 80.0 ± 0.0 (6)"]
    assert by_class["sst2", "LaCon-vanilla"] == [" / 30.0 ± 0.0 (6)", " / 84.0 ± 0.0 (6)"]
    assert [row[:2] for row in sweep_table(results)[1]] == [
        [what, task] for what in ("tau", "heads", "lambda") for task in ("rte", "sst2")
    ]


def test_the_score_of_always_predicting_one_class():
    assert always(0.7, 2, None) == 0.7
    assert always(0.7, 2, "matthews") == 0
    truth = [0] * 7 + [1, 1, 2]
    said = f1_score(truth, [0] * 10, average="macro", zero_division=0)
    assert always(0.7, 3, "macro_f1") == pytest.approx(said)
