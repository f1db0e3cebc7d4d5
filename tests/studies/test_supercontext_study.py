"""SuperConText's cells as configurations, the command that runs them, and its tables."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cell_files import few_words, keep_seeds, write_times

from common.files import digest
from multitask.settings.config import RunConfig
from pretrain.probe import linear_evaluation
from studies.claims import verdict_table
from studies.results import Results
from studies.runner import run_seed
from studies.study import printed
from studies.supercontext.cells import (
    COMPARED,
    FIRST,
    SETTINGS,
    SWEEPS,
    TASKS,
    Experiments,
)
from studies.supercontext.claims import setting_claims, sweep_claims, unfair
from studies.supercontext.evaluation import Vectors
from studies.supercontext.tables import (
    HARD_COLUMNS,
    Accuracies,
    best_hard,
    hard_table,
    losses_table,
    sweep_table,
    swept,
)

PAPER = printed("supercontext")
CELLS = Experiments(RunConfig(mode="single", tasks=(), encoder="tiny"))


def test_every_setting_and_task_has_its_cells_and_only_compared_losses_are_fine_tuned():
    names = {one.name for one in CELLS.every()}
    for setting, task in product(SETTINGS, {*PAPER["heads"], *PAPER["hard"]}):
        assert {f"{setting}-{task}-head-none", f"{setting}-{task}-hard-top_k-5"} <= names
    fine_tuned = {one.name for one in CELLS.every() if tuned(one)}
    assert fine_tuned == {f"{s}-{t}-{loss}" for s in SETTINGS for t in TASKS for loss in COMPARED}


def test_settings_are_the_papers():
    small, large = CELLS.main("small", "msac", "superloss"), CELLS.main("large", "sst2", "ce")
    config = small.config
    assert (config.optimizer.lr, config.epochs, config.batch_size) == (0.003, 15, 200)
    assert (config.encoder, config.class_balanced) == ("bilstm-1x128-dropout0.2", True)
    assert CELLS.main("small", "msac", "ce").config.batch_size == 64
    control = CELLS.main("small", "msac", "ce-balanced").config
    assert (control.mode, control.batch_size, control.class_balanced) == ("single", 200, True)
    assert (large.config.optimizer.lr, large.config.epochs) == (0.001, 60)
    assert large.config.encoder == "bilstm-3x512-dropout0.3"
    assert CELLS.hard("large", "sst2", "top_k", 5).config.objective.hard_after == 20
    assert CELLS.main("given", "sst", "ce").config.encoder == "tiny"
    assert CELLS.main("given", "cfimdb", "ce").seeds == (1, 2)
    with_vectors = replace(CELLS, vectors=Vectors(Path("/data/glove.6B.300d.txt"), "0123456789"))
    named = with_vectors.main("small", "sst", "ce").config.encoder
    assert named == "bilstm-1x128-dropout0.2-glove.6B.300d-01234567"


def test_a_sweep_at_its_own_value_is_the_main_cell():
    assert CELLS.sweep("batch", 200).name == "small-sst-superloss"
    assert CELLS.sweep("layers", 1, "ce").name == "small-sst-ce"
    assert CELLS.sweep("tau", 0.1).name == "small-sst-superloss"
    assert CELLS.sweep("units", 512).config.encoder == "bilstm-1x512-dropout0.2"
    assert CELLS.sweep("positives", 5).config.objective.positives == 5


@pytest.fixture
def data(tmp_path):
    return few_words(tmp_path / "data", "SST-2", train=80, dev=24)


@pytest.fixture
def reproduce(reproducing, data):
    short = ("--encoder", "tiny", "--epochs", 2, "--limit", 60, "--dev-limit", 6)
    return reproducing("supercontext", "--data", data, *short)


def test_cells_are_run_once_and_evaluated(reproduce, tmp_path, monkeypatch):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("good 1 0\nbad 0 1\n")
    rows = ("given-sst2-ce", "small-sst2-superloss", "given-sst2-hard-top_k-5", "small-trec-ce")
    flags = ("--rows", *rows, "--seeds", "1", "--vectors", vectors)
    judged = []
    monkeypatch.setattr(
        "studies.supercontext.evaluation.linear_evaluation",
        lambda config: judged.append(Path(config.encoder)) or linear_evaluation(config),
    )
    status, said = reproduce(*flags)
    assert status == 0, said.err
    assert [path.parent.name for path in judged] == ["pretrained"] * 3
    assert "trec is skipped: " in said.out
    results = tmp_path / "supercontext"
    names = {"given-sst2-ce", "small-sst2-superloss", "given-sst2-hard-top_k-5"}
    assert {path.stem for path in results.glob("*.json")} == names | {"ids-sst2-held-out"}
    one = json.loads((results / "small-sst2-superloss.json").read_text())
    assert one["config"]["encoder"] == f"bilstm-1x128-dropout0.2-vectors-{digest(vectors)[:8]}"
    found = one["seeds"]["1"]
    assert found["pretrained"]["dev"]["sst2-superloss"].keys() == {"knn_accuracy"}
    for how in ("linear", "tuned"):
        for split in ("dev", "test"):
            assert found[how][split]["sst2"].keys() == {"accuracy", "f1", "matthews"}
    hard = json.loads((results / "given-sst2-hard-top_k-5.json").read_text())["seeds"]["1"]
    assert "linear" in hard
    assert "tuned" not in hard, "no table has it"
    text = (tmp_path / "supercontext.md").read_text()
    share = 100 * found["linear"]["test"]["sst2"]["accuracy"]
    assert f"94.15 / {share:.1f} (1)" in text
    assert "mixed up in print" in text
    times = write_times(results)
    assert reproduce(*flags)[0] == 0
    assert times == write_times(results)


def test_a_stopped_run_continues_only_with_its_own_settings(data, tmp_path):
    """Or a BiLSTM would begin with the vectors of another."""
    folders = []

    def stopped(config, folder):
        folders.append(folder)
        assert not folder.exists()
        folder.mkdir()
        raise KeyboardInterrupt

    base = RunConfig(mode="single", tasks=(), data=str(data))
    for sums in ("0" * 64, "1" * 64):
        vectors = Vectors(Path("vectors.txt"), sums)
        one = Experiments(base, vectors=vectors).main("small", "sst2", "superloss")
        one = replace(one, run_function=stopped)
        with pytest.raises(KeyboardInterrupt):
            run_seed(one, 1, Results(tmp_path), tmp_path, record_drawn=True, wait=True)
    assert len(set(folders)) == 2


def tuned(one):
    return one.run_function.keywords["fine_tuned_batch_size"] is not None


def hard_of(one):
    (found,) = one.config.objective.hard.items()
    return found


def invented(folder, better):
    """Kept cells of two tasks: SuperLoss better than cross-entropy by `better`."""
    draw = np.random.default_rng(0)
    for one in CELLS.every():
        (task,) = one.config.tasks
        if task not in ("sst2", "sst") or one.name.startswith("large"):
            continue
        figures = {}
        # The hard negatives that are better on dev are worse on test.
        rank = HARD_COLUMNS.index(hard_of(one)) / 100 if "-hard-" in one.name else 0.0
        for seed in one.seeds:
            gain = better if one.name.endswith("-superloss") else 0.0
            accuracy = 0.6 + task.count("2") / 10 + seed / 100 + gain + draw.normal(0, 0.001)
            both = {
                "dev": {task: {"accuracy": accuracy + rank + 0.1}},
                "test": {task: {"accuracy": accuracy - rank}},
            }
            figures[str(seed)] = {"linear": both, "pretrained": both}
            if tuned(one):
                figures[str(seed)]["tuned"] = both
        keep_seeds(folder / f"{one.name}.json", one.config.to_json(), figures)


@pytest.mark.parametrize("better", [0.05, -0.05])
def test_claims_are_tested(tmp_path, better):
    invented(tmp_path, better)
    results = Accuracies(CELLS, Results(tmp_path))
    tested = [
        replace(claim, tests=[test for test in claim.tests if test.differences])
        for claim in setting_claims(results, "small")
    ]
    assert {len(test.differences) for claim in tested for test in claim.tests} == {12}
    reasons = tested[0].tests[0].reasons
    assert "word vectors start at random, without GloVe's" in reasons
    unlike = ["only SuperLoss has class-balanced batches", "different batch sizes"]
    assert [[one in test.reasons for one in unlike] for test in tested[0].tests] == [
        *([True, True], [False, False], [False, False], [False, False], [False, False])
    ]
    fair = [replace(one, tests=[replace(test, reasons=()) for test in one.tests]) for one in tested]
    verdicts = {row[0]: row[1] for row in verdict_table(fair)[1]}
    on = " on sst2, sst (sst not in the paper's table)"
    verdicts = {row.replace(on, ""): verdict for row, verdict in verdicts.items()}
    best = (
        "small BiLSTM: SuperLoss is better than other losses: SuperLoss - Cross-entropy (Table 4)"
    )
    assert verdicts[best] == ("holds" if better > 0 else "does not hold")
    frozen = "small BiLSTM: a frozen encoder is better than a fine-tuned one: SuperLoss (Table 3)"
    assert verdicts[frozen] == "not shown"
    assert not [reason for reason in tested[-1].tests[0].reasons if "chosen" in reason]
    chosen = replace(CELLS, tuned={"small-sst2-superloss": {"lr": 1e-3}})
    *_, last = setting_claims(Accuracies(chosen, results.stored), "small")
    assert "settings were chosen for frozen encoders" in last.tests[0].reasons
    assert last.tests[-1].what == "on yelp2, yelp5, amazon2, amazon5, imdb, msac, asac"
    few = "2 epochs at most; whether more change the result is not known"
    fewer = "fewer epochs than the paper's 15"
    for epochs, of_given, of_small in ((None, True, False), (1, True, True), (15, False, False)):
        changed = Accuracies(replace(CELLS, epochs=epochs), results.stored)
        assert (few in unfair(changed, "given"), fewer in unfair(changed, "small")) == (
            of_given,
            of_small,
        )
    header, rows = losses_table(results, "given", "linear")
    assert header[1:] == list(COMPARED.values())
    assert {"sst2", "sst", "imdb"} <= {
        row[0] for row in rows
    }  # absent ones with the paper's figures
    assert rows[0][1].startswith("91.28 / ")
    assert len(hard_table(results, FIRST[0])[1]) == 4
    chosen = best_hard(results, "small", "sst")
    assert hard_of(chosen) == HARD_COLUMNS[-1], "the best on dev, which is the worst on test"
    dev, test = (results.of(CELLS.sweep("units", 300), split=split) for split in ("dev", "test"))
    assert swept(results, "units", 300, "superloss") == dev
    assert dev != test
    ends, shapes = sweep_claims(results)
    assert [(test.what, test.seeds) for test in ends.tests][3:] == [
        ("tau: 0.05 - 1", 3),
        ("positives: 39 - 5", 3),
        ("negatives: 160 - 10", 3),
    ]
    assert all(gain * better > 0 for gain in shapes.tests[0].differences.values())
    assert set(unlike) < set(shapes.tests[0].reasons)
    assert {row[0] for row in sweep_table(results)[1]} == set(SWEEPS)
