"""Runs of a paper on the tiny encoder: nothing is run twice; claims and their verdicts."""

from dataclasses import replace

import pytest
from scipy import stats

from cli import main
from common.errors import SettingsError, UserError
from papers import runs
from papers.evidence import Difference, Evidence, expanded
from papers.page import sentence
from papers.paper import Cell, Paper, Row, find_paper, merged, rates
from papers.runs import Place, cells, run_cells
from papers.scl_moo import front
from papers.store import Figure, Store, read_figures, write_figures
from tasks.metrics import overall_score

SMALL = {"encoder": "tiny", "precision": "fp32", "epochs": 1, "limit": 24, "dev_limit": 20}
SST, STS = {**SMALL, "tasks": {"sst": {}}}, {**SMALL, "tasks": {"sts": {}}}
SIMCSE = {
    "mode": "pretrain",
    "objective": "simcse",
    "tasks": {"sst": {}},
    "encoder": "tiny",
    "limit": 24,
    "precision": "fp32",
}
PAPER = Paper(
    "small",
    {
        "simcse": Row(SIMCSE, (1,)),
        "A": Row(SST, (1, 2), rates(1e-4, 1e-2)),
        "B": Row(SST, (1,), like="A", start="simcse"),
        "S": Row(STS, (1,)),
        "probe": Row(SST, (1,), probe=True),
        "together": Row({}, (1,), members={"sst": ("A", "B"), "sts": ("S",)}),
    },
    ("accuracy", "pearson"),
)


@pytest.fixture
def place(tmp_path):
    return Place("sample", tmp_path / "runs", Store(tmp_path / "results", "small"))


def test_a_row_is_run_with_what_it_needs_and_nothing_is_run_twice(place, monkeypatch):
    every = cells(PAPER, ["together", "probe"], None)
    assert every == [Cell("probe", 1), Cell("together", 1)]
    assert run_cells(PAPER, every, place) == []
    points = [("A@1e-2", 0), ("A@1e-4", 0)]
    rows = [("A", 1), ("B", 1), ("S", 1), ("probe", 1), ("simcse", 1), ("together", 1)]
    assert place.store.runs == {*points, *rows}
    best = max(PAPER.points("A"), key=lambda one: PAPER.score_on_dev(one, place.store))
    chosen = {"1e-2": 1e-2, "1e-4": 1e-4}[best.point]
    for row in ("A", "B"):
        assert place.store.settings[row]["optimizer"] == {"lr": chosen, "head_lr": chosen}
    assert place.store.settings["B"]["start"] == "simcse"
    dev = {one.metric: one.value for one in place.store.figures if one.row == "together"}
    assert {"accuracy", "pearson"} == {*dev}
    splits = {one.split for one in place.store.figures if one.row == "A@1e-2"}
    assert splits == {"dev", "train"}
    kept = {path.parent.name for path in place.runs.glob("*/best")}
    assert kept == {"simcse-seed1"}

    monkeypatch.setattr(runs, "train", lambda *args: pytest.fail("trained again"))
    assert run_cells(PAPER, cells(PAPER, None, 1), place) == []


def test_stored_runs_of_other_settings_are_refused_and_failures_do_not_stop(place):
    figure = Figure("S", "sts", 1, "dev", "pearson", 0.5, "c", "m", "d")
    place.store.add("S", [figure], {**STS, "epochs": 7}, "")
    with pytest.raises(SettingsError, match="S has another epochs; choose another --results"):
        run_cells(PAPER, [Cell("S", 1)], place)
    broken = Paper("small", {"A": Row({**SST, "encoder": "/none"}, (1,))}, ("accuracy",))
    (failed,) = run_cells(broken, [Cell("A", 1)], place)
    assert failed.startswith("A-seed1: ")
    place.store.add("S", [figure], STS, "other")
    with pytest.raises(SettingsError, match="has rows of another command: other; choose"):
        run_cells(PAPER, [], place)


def test_settings_are_merged_method_by_method_and_a_rate_replaces_the_search():
    both = merged(
        {"optimizer": {"lr": 1, "weight_decay": 2}, "tasks": {"a": {"x": 1}}},
        {"optimizer": {"lr": 3}, "tasks": {"b": {}}},
    )
    assert both == {"optimizer": {"lr": 3, "weight_decay": 2}, "tasks": {"b": {}}}
    assert [*rates(3e-5, 1.5e-4)] == ["3e-5", "1.5e-4"]
    other = find_paper("bees").changed({"encoder": "tiny", "limit": 0.1, "lr": 2e-5})
    assert not any(map(other.tuned_rows, other.rows))
    weights = find_paper("combiners").changed({"lr": 2e-5})
    assert weights.tuned_rows("sum") == []
    assert weights.tuned_rows("linear-full") == ["linear"]
    assert other.rows["M9"].settings["optimizer"] == {
        "weight_decay": 0.01,
        "warmup": 0.1,
        "lr": 2e-5,
        "head_lr": 2e-5,
    }
    assert "optimizer" not in other.rows["simcse-sst"].settings
    assert "limit" not in other.rows["M4-full"].settings
    assert other.rows["M4"].settings["limit"] == 0.1


def test_a_row_whose_tuning_is_incomplete_has_no_settings(tmp_path):
    paper, store = find_paper("bees"), Store(tmp_path, "bees")
    with pytest.raises(SettingsError, match="M9: its settings are not chosen yet"):
        paper.settings(Cell("M9", 1), store)
    for point, value in (("3e-5", 0.7), ("1e-4", 0.8), ("3e-4", 0.6)):
        figure = Figure(f"M7@{point}", "all", 0, "dev", "overall", value, "c", "m", "d")
        store.add(figure.row, [figure], {}, "")
    assert paper.settings(Cell("M9", 1), store)["optimizer"]["lr"] == 1e-4


def test_figures_are_read_as_written_and_other_files_are_refused(tmp_path):
    file = tmp_path / "p.csv"
    figures = [
        Figure("b", "sst", 10, "dev", "accuracy", 0.123456, "c", "m", "d"),
        Figure("b", "sst", 9, "dev", "mean, label", 100.0, "c", "m", "d"),
    ]
    write_figures(file, figures)
    assert read_figures(file) == figures[::-1]
    for text in ("row,value\na,1\n", file.read_text().replace("0.123456", "x"), ""):
        file.write_text(text)
        with pytest.raises(UserError, match="expected figures row,task,seed"):
            read_figures(file)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--table speed --rows x", "none in speed, a page of python -m benchmarks"),
        ("--table bees --page-only --rows M99", "--rows: choose from simcse-sst"),
    ],
)
def test_wrong_requests_are_one_line(flags, message, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["--mode", "reproduce", *flags.split(), "--results", str(tmp_path)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def evidence(tmp_path):
    """Rows A and B of sst with three seeds, C with four; X, Y and Z of one task each."""
    scores = {
        ("A", "sst", "accuracy"): [0.50, 0.52, 0.51],
        ("B", "sst", "accuracy"): [0.48, 0.49, 0.48],
        ("C", "sst", "accuracy"): [0.50, 0.47, 0.51, 0.9],
        ("D", "sst", "accuracy"): [0.50, 0.52, 0.51],
        ("X", "sst", "accuracy"): [0.5, 0.6],
        ("Y", "qqp", "accuracy"): [0.8, 0.7],
        ("Z", "sts", "pearson"): [0.9, 0.8],
        ("Z", "sts", "mean label"): [2.5, 2.7],
    }
    figures = [
        Figure(row, task, seed, "dev", metric, value, "c", "m", "d")
        for (row, task, metric), values in scores.items()
        for seed, value in enumerate(values, start=1)
    ]
    on_test = {"B": 0.5, "D": 0.4}.items()
    figures += [Figure(row, "sst", 1, "test", "accuracy", one, *"cmd") for row, one in on_test]
    write_figures(tmp_path / "p.csv", figures)
    metrics = {"sst": "accuracy", "qqp": "accuracy", "sts": "pearson", "all": "overall"}
    return Evidence(Store(tmp_path, "p"), "dev", metrics)


def test_an_interval_is_that_of_scipy_over_the_seeds_that_both_have(evidence):
    one = Difference(["A sst"], ["C sst"], evidence)
    assert one.values == pytest.approx([0, 5, 0])
    expected = stats.ttest_1samp(one.values, 0)
    assert one.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert one.p == pytest.approx(expected.pvalue)


def test_gain_is_relative_to_models_of_one_task_and_rank_a_mean_over_tasks(evidence):
    found = replace(evidence, singles={"sst": "B"}, ranked=("A", "B", "C"))
    assert found.term("A gain") == pytest.approx({1: 0.02 / 0.48, 2: 0.03 / 0.49, 3: 0.03 / 0.48})
    assert found.term("A rank") == {1: 1.5, 2: 1.0, 3: 1.5}
    assert found.term("X+Y+Z gain") == {}


@pytest.mark.parametrize(
    ("plus", "minus", "verdict"),
    [
        ("A sst", "B sst", "holds"),
        ("B", "A", "does not hold"),
        ("A sst", "C sst", "not shown"),
        ("D sst", "B sst", "not shown"),  # test has the other sign
        ("X sst", "A sst", ""),  # two seeds
        ("absent sst", "A sst", ""),
    ],
)
def test_a_verdict_follows_from_the_interval(evidence, plus, minus, verdict):
    assert Difference([plus], [minus], evidence).verdict == verdict


def test_terms_are_rows_of_a_task_means_of_several_and_rows_together(evidence):
    assert Difference(["{A,B}"], ["B"], evidence).values == pytest.approx([1, 1.5, 1.5])
    both = evidence.term("X+Y+Z all")
    assert both == pytest.approx({1: overall_score(0.5, 0.8, 0.9), 2: overall_score(0.6, 0.7, 0.8)})
    assert evidence.term("X+Y+Z sst") == {}
    assert evidence.term("Z sts mean label") == {1: 2.5, 2: 2.7}
    assert expanded("{a,b}-{1,2}") == ["a-1", "a-2", "b-1", "b-2"]


def test_a_sentence_has_computed_numbers_or_is_left_out(evidence):
    claims = {"one": Difference(["A sst"], ["B sst"], evidence)}
    text = "A has {A sst}, {one} points more ({one interval}, {one verdict})."
    found = sentence(text, claims, evidence)
    assert found == "A has 51.0, +2.67 points more (+1.23 to +4.10, holds)."
    assert sentence("C has {absent sst}.", claims, evidence) == ""


def test_a_front_has_the_points_that_no_other_dominates():
    points = {"0.1": (0.0, 3.0), "0.3": (1.0, 1.0), "0.5": (2.0, 1.0), "0.7": (3.0, 0.5)}
    assert front(points) == ["0.1", "0.3", "0.7"]
    assert front({**points, "best": (-1.0, 0.0)}) == ["best"]
