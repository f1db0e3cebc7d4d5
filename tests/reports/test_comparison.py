"""Systems of runs, their scores over seeds, the differences, and the sentence about them."""

import csv
import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy.stats import bootstrap

from common.errors import UserError
from common.files import write_json
from ensemble.runs import ensemble_runs
from multitask.runs import Run
from reports import comparison
from reports.comparison import Difference, compare, verdicts
from reports.comparison_tables import as_csv, score_section
from reports.run_tables import runs_table
from reports.scores import overall_figures, read_tasks, seeds_of
from reports.systems import NO_SEED, group_runs
from tasks import CS224N
from tasks.metrics import pearson
from tasks.predictions import Scores, read_scores, scores_name, write_scores


@pytest.fixture(autouse=True)
def few_resamples(quick_comparisons):
    """Few bootstrap samples."""


def systems(*named):
    return group_runs([(name, Run(folder)) for name, folder in named])


@pytest.fixture
def pair(make_run):
    """Three seeds of single-task runs with SMART on some, beside multi-task runs."""
    named = []
    for seed in (1, 2, 3):
        for task in CS224N:
            smart = [{"name": "smart", "weight": {task: 1.0}}]
            folder = make_run(f"{task}{seed}", [task], 0.25, seed, regularizers=smart)
            named.append((None, folder))
        named.append((None, make_run(f"all{seed}", CS224N, 0.35, seed, sampling="annealed")))
    return systems(*named)


def test_runs_of_tasks_and_seeds_are_one_system(pair):
    single, multi = pair
    assert single.name == "single, smart weight 1"
    assert multi.name == "multitask, sampling annealed"
    assert set(single.cells) == {(task, seed) for task in CS224N for seed in (1, 2, 3)}
    assert single.cells.keys() == multi.cells.keys()


def test_runs_are_ranked_among_those_of_the_same_tasks(make_run, tmp_path):
    scores = {"a": ("sts", 0.9), "b": ("sst", 0.4), "c": ("sst", 0.6), "d": ("sts", 0.95)}
    for name, (task, value) in scores.items():
        folder = make_run(name, [task], 0.5)
        dev = {task: {"pearson" if task == "sts" else "accuracy": value}}
        write_json(folder / "metrics.json", {"dev": dev})
    make_run("e", ["sst"], 0.5)
    rows = runs_table([Run(tmp_path / name) for name in "abcde"], tmp_path).splitlines()[2:-1]
    assert [row.split(" single ")[0].split()[-1] for row in rows] == [*"cbdae"]


def test_scores_are_means_over_seeds_and_overall_ones_of_seeds_with_all_tasks(pair, make_run):
    found = compare(pair)
    header, rows = score_section(found).table
    values = found.tasks["sst"].figures(pair[0].name, "accuracy")
    expected = f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f} (3)"
    assert rows[0][header.index("sst accuracy")] == expected
    assert header[1:3] == ["sst accuracy", "sst macro_f1"]
    assert len(overall_figures(pair[0].name, found.tasks, CS224N)) == 3
    lines = list(csv.DictReader(as_csv(found).splitlines()))
    chosen = [one for one in lines if (one["task"], one["metric"]) == ("sst", "accuracy")]
    stored = [float(one["value"]) for one in chosen if one["system"] == pair[0].name]
    assert stored == pytest.approx(values, abs=1e-6)
    named = [("a", make_run("all", CS224N, 0.3, 1)), ("a", make_run("further", ["sst2"], 0.3, 9))]
    assert len(overall_figures("a", read_tasks(systems(*named)), CS224N)) == 1


def test_the_most_frequent_class_and_test_scores_stand_beside_them(make_run):
    runs = [make_run(name, ["sst", "sts"], 0.3) for name in "ab"]
    found = {"dev": {}, "test": {"sts": {"pearson": 0.5}}}
    write_json(runs[0] / "metrics.json", found)
    section = score_section(compare(systems(*zip("ab", runs, strict=True))))
    header, rows = section.table
    scores = read_scores(runs[0] / "predictions" / scores_name("sst", "dev"))
    most = np.bincount(scores.targets).max() / len(scores.targets)
    assert rows[2][:2] == ["the most frequent class", f"{most:.4f}"]
    assert [row[header.index("sts pearson, test")] for row in rows] == ["0.5000", "", ""]
    assert not any(row == 2 for row, _ in section.best)


def test_the_difference_is_that_of_the_means_inside_its_interval(pair):
    found = compare(pair)
    overall, *several = found.differences
    for one in several:
        before, after = (found.tasks[one.task].mean(system.name) for system in pair)
        assert one.difference == pytest.approx(after - before)
    before, after = (np.mean(overall_figures(system.name, found.tasks, CS224N)) for system in pair)
    assert overall.means == pytest.approx((before, after))
    for one in found.differences:
        assert one.interval[0] < one.difference < one.interval[1]
    assert np.ptp(overall.interval) < max(np.ptp(one.interval) for one in several)


def test_the_interval_of_one_seed_is_that_of_scipy(make_run):
    named = [(n, make_run(n, ["sts"], skill)) for n, skill in (("one", 0.3), ("two", 0.6))]
    with mock.patch.object(comparison, "RESAMPLES", 2000):
        found = compare(systems(*named))
    one = found.tasks["sts"]
    first, second = one.predictions.values()

    def difference(rows):
        return pearson(second[rows], one.targets[rows]) - pearson(first[rows], one.targets[rows])

    settings = {"vectorized": False, "method": "percentile", "n_resamples": 2000, "rng": 1}
    expected = bootstrap((np.arange(80),), difference, **settings).confidence_interval
    # Both are of 2,000 random samples.
    np.testing.assert_allclose(found.differences[0].interval, expected, atol=0.03)


def test_a_gain_that_depends_on_the_seed_is_not_clear(make_run):
    named = [
        (name, make_run(f"{name}{seed}", ["sst"], skill, seed))
        for seed, skills in ((1, (0.2, 0.9)), (2, (0.4, 0.3)))
        for name, skill in zip(("one", "two"), skills, strict=True)
    ]
    (found,) = compare(systems(*named)).differences
    assert found.difference > 0.1
    assert not found.clear
    (found,) = compare(systems(*named[:2])).differences
    assert found.clear


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            [("overall", -0.2, -0.1), ("sst", 0.1, 0.2), ("qqp", -0.2, -0.1)],
            "multi is 15.0 points below single overall: 35.0 against 50.0. multi is "
            "clearly above on sst. multi is clearly below on qqp "
            "(seed 1; dev examples: sst 80, qqp 80).",
        ),
        (
            [("sst", -0.1, 0.2)],
            "No clear difference on sst: multi 55.0, single 50.0 (seed 1; dev examples: sst 80).",
        ),
        ([], "multi and single have no task in common."),
    ],
)
def test_the_sentence_says_size_direction_and_what_is_clear(make_run, found, expected):
    named = [(name, make_run(name, ["sst", "qqp"], 0.3, 1)) for name in ("single", "multi")]
    differences = []
    for task, low, high in found:
        means, samples = (0.5, 0.5 + (low + high) / 2), np.linspace(low, high, 101)
        differences.append(Difference("multi", task, "accuracy", means, samples, 80))
    both = replace(compare(systems(*named)), differences=tuple(differences))
    assert verdicts(both) == [expected]


def test_one_system_has_its_scores_and_one_class_for_all_is_a_warning(make_run):
    folder = make_run("a", ["sst"], 0.3)
    found = compare(systems(("alone", folder)))
    accuracy = found.tasks["sst"].mean("alone")
    assert verdicts(found) == [
        f"alone: accuracy {100 * accuracy:.1f} on sst (seed 11711; dev examples: sst 80)."
    ]
    file = folder / "predictions" / scores_name("sst", "dev")
    scores = read_scores(file)
    write_scores(file, Scores(scores.ids, np.eye(5)[np.full(80, 2)], scores.targets))
    (_, warning) = verdicts(compare(systems(("alone", folder))))
    predicted = "predicts the same class for every dev example of sst: neutral."
    assert warning == f"alone with seed 11711 {predicted}"


def test_invalid_systems_are_refused(make_run, tmp_path):
    one, two = make_run("a", ["sst"], 0.2), make_run("b", ["sst"], 0.3)
    with pytest.raises(UserError, match="are both runs of sst with seed 11711"):
        systems((None, one), (None, two))
    assert len(systems(("x", one), ("y", two))) == 2
    (one / "metrics.json").unlink()
    with pytest.raises(UserError, match="the run is not finished"):
        systems((None, one))
    with pytest.raises(UserError, match="there is no run"):
        systems((None, tmp_path / "nowhere"))
    write_json(two / "config.json", {"mode": "pretrain", "tasks": ["sst"]})
    with pytest.raises(UserError, match="b: a run of mode pretrain has no tasks; c"):
        systems((None, two))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"data": "one"}, {"data": "two"}),
        ({"tasks": {"sst": {"head": "softmax"}}}, {}),
        ({"files": "0"}, {"files": "1"}),
    ],
)
def test_runs_that_differ_in_more_than_tasks_and_seed_are_not_merged(make_run, first, second):
    def run(name, seed, files="0", **settings):
        folder = make_run(name, **{"tasks": ["sst"], "skill": 0.2, "seed": seed, **settings})
        write_json(folder / "data.json", {"sst train": files})
        return folder

    one, two = run("a", 1, **first), run("b", 2, **second)
    with pytest.raises(UserError, match=r"b: its data, options or tasks beside sst differ .*a"):
        systems((None, one), (None, two))
    assert len(systems(("x", one), ("x", two))) == 1


def test_runs_that_start_from_different_ones_are_two_systems(make_run):
    starts = [("x", "sts", 1), ("z", "sts", 2), ("y", "qqp", 1)]
    runs = []
    for seed, (name, task, number) in enumerate(starts):
        rate = {"optimizer": {"name": "adamw", "lr": 1e-3}} if task == "qqp" else {}
        start = str(make_run(name, [task], 0.2, number, **rate))
        runs.append((None, make_run(f"r{seed}", ["sst"], 0.3, seed, init=start)))
    found = systems(*runs)
    assert ["optimizer lr 0.001" in one.name for one in found] == [False, True]
    assert [len(one.runs) for one in found] == [2, 1]


def test_runs_of_other_examples_are_not_averaged(make_run):
    one, two = make_run("a", ["sst"], 0.2, 1), make_run("b", ["sst"], 0.3, 2)
    file = two / "predictions" / scores_name("sst", "dev")
    write_scores(file, read_scores(file).rows(np.arange(40)))
    with pytest.raises(UserError, match=r"b and .*a have different examples"):
        read_tasks(systems((None, one), (None, two)))


def test_merged_runs_have_no_seed_unless_it_chose_their_members(make_run, tmp_path):
    runs = [make_run(name, ["sst"], skill) for name, skill in (("a", 0.2), ("b", 0.3))]
    for method, seed in (("vote", NO_SEED), ("greedy", 7)):
        ensemble_runs({"sst": runs}, method, 7, tmp_path / method)
        (merged,) = systems((method, tmp_path / method))
        assert [*merged.cells] == [("sst", seed)]
    found = compare(systems(("vote", tmp_path / "vote"), ("a", runs[0])))
    assert [seeds_of([name], found.tasks.values()) for name in ("vote", "a")] == [[], [11711]]
    assert "(no seed and seed 11711; " in verdicts(found)[0]


def test_examples_that_selected_an_ensemble_are_left_out_of_every_system(make_run, tmp_path):
    runs = [make_run(name, ["sst"], skill) for name, skill in (("a", 0.2), ("b", 0.3))]
    ensemble_runs({"sst": runs}, "greedy", 11711, tmp_path / "greedy")
    both = compare(systems(("a", runs[0]), ("merged", tmp_path / "greedy")))
    table = read_scores(tmp_path / "greedy" / "predictions" / scores_name("sst", "dev"))
    found = both.tasks["sst"]
    assert set(found.ids) == set(table.ids[~table.selected_on])
    assert (len(found.ids), found.left_out) == (40, 40)
    kept = json.loads((tmp_path / "greedy" / "metrics.json").read_text())
    assert found.metrics["merged", 11711] == kept["dev"]["sst"]
    assert found.metrics["a", 11711] == kept["members"]["sst"]["dev"]["a"]
    assert "Left out: 40 of 80 dev examples of sst" in verdicts(both)[1]
    assert len(read_tasks(systems(("a", runs[0])))["sst"].ids) == 80
