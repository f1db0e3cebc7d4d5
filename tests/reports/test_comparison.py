"""Systems of runs, their scores over seeds, and the tests of their differences."""

import json

import numpy as np
import pytest
from matplotlib.text import Text

from common.errors import UserError
from common.files import write_json
from ensemble.runs import ensemble_runs
from multitask.runs import Run
from reports.comparison import (
    compare,
    compare_on_task,
    paired_cells,
    relative_gain,
    signed_ranks,
)
from reports.comparison_figures import forest_plot
from reports.comparison_tables import (
    as_latex,
    as_markdown,
    score_section,
)
from reports.scored_systems import score_systems
from reports.systems import NO_SEED, group_runs
from tasks import CS224N
from tasks.predictions import Scores, read_scores, scores_name, write_scores


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
    return score_systems(systems(*named))


def test_runs_of_tasks_and_seeds_are_one_system(pair):
    single, multi = pair
    assert single.system.name == "single, smart weight 1"
    assert multi.system.name == "multitask, sampling annealed"
    assert set(single.system.cells) == {(task, seed) for task in CS224N for seed in (1, 2, 3)}
    assert single.system.cells.keys() == multi.system.cells.keys()


def test_scores_are_means_over_seeds_and_overall_ones_of_seeds_with_all_tasks(pair, make_run):
    header, rows = score_section(pair).table
    place = header.index("sst accuracy")
    values = pair[0].values("sst", "accuracy")
    assert rows[0][place] == f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f} (3)"
    assert len(pair[0].overall_values("overall")) == 3
    assert header[1:3] == ["sst accuracy", "sst macro_f1"]
    assert rows[0][-1] == ""
    named = [("a", make_run("all", CS224N, 0.3, 1)), ("a", make_run("further", ["sst2"], 0.3, 9))]
    (found,) = score_systems(systems(*named))
    assert len(found.overall_values("overall")) == 1


def test_the_relative_gain_is_the_mean_over_tasks_and_none_relative_to_zero(pair, make_run):
    first, other = pair
    gains = []
    for task, metric in (("sst", "accuracy"), ("qqp", "accuracy"), ("sts", "pearson")):
        before, after = (np.mean(one.values(task, metric)) for one in pair)
        gains.append(after / before - 1)
    assert relative_gain(first, other) == pytest.approx(100 * np.mean(gains))
    assert relative_gain(first, first) == 0
    file = make_run("a", ["sts"], 0.2) / "predictions" / scores_name("sts", "dev")
    found = read_scores(file)
    write_scores(file, Scores(found.ids, np.ones_like(found.values), found.targets))
    named = (("one", file.parents[1]), ("two", make_run("b", ["sts"], 0.4)))
    flat, other = score_systems(systems(*named))
    assert flat.values("sts", "pearson") == [0]
    assert relative_gain(flat, other) is None


def test_a_difference_and_its_interval(pair):
    for task in CS224N:
        found = compare_on_task(*pair, task)
        before, after = (np.mean(one.values(task, found.metric)) for one in pair)
        assert found.difference == pytest.approx(after - before)
        assert found.interval[0] < found.difference < found.interval[1]
        assert (found.mcnemar is None) == (task == "sts")


def test_a_gain_that_depends_on_the_seed_is_not_clear(make_run):
    named = [
        (name, make_run(f"{name}{seed}", ["sst"], skill, seed))
        for seed, skills in ((1, (0.2, 0.9)), (2, (0.4, 0.3)))
        for name, skill in zip(("one", "two"), skills, strict=True)
    ]
    one, two = score_systems(systems(*named))
    found = compare_on_task(one, two, "sst")
    assert found.difference > 0.1
    assert not found.clear
    (first,) = score_systems(systems(named[0]))
    (second,) = score_systems(systems(named[1]))
    assert compare_on_task(first, second, "sst").clear


def test_the_order_of_the_examples_changes_nothing(make_run):
    order, texts = np.random.default_rng(0).permutation(80), []
    for name, (first, second) in {
        "a": (None, None),
        "b": (None, order),
        "c": (order, order),
    }.items():
        one = make_run(f"{name}1", CS224N, 0.25, order=first)
        two = make_run(f"{name}2", CS224N, 0.4, order=second)
        texts.append(as_markdown(compare(score_systems(systems(("one", one), ("two", two))))))
    assert texts[0] == texts[1] == texts[2]


def test_few_cells_cannot_be_tested(make_run):
    several = [
        (name, make_run(f"{name}{seed}", ["sst"], skill, seed))
        for seed in range(6)
        for name, skill in (("one", 0.2), ("two", 0.5))
    ]
    five = score_systems(systems(*several[:10]))
    assert signed_ranks(five[0], five[1:]) == [(None, 5)]
    assert "not testable" in as_markdown(compare(five))
    six = score_systems(systems(*several))
    assert signed_ranks(six[0], six[1:]) == [(2 / 2**6, 6)]
    assert all(difference > 0 for difference in paired_cells(*six))


def test_latex_is_escaped(pair):
    text = as_latex(compare(pair))
    assert r"sst macro\_f1" in text
    assert r"$\pm$" in text
    assert text.count(r"\toprule") == 4
    assert r"\textbf{0." in text
    body = "".join(line for line in text.splitlines(True) if not line.startswith("%"))
    assert "_" not in body.replace(r"\_", "")


def test_invalid_systems_are_refused(make_run, tmp_path):
    one, two = make_run("a", ["sst"], 0.2), make_run("b", ["sst"], 0.3)
    with pytest.raises(UserError, match="expected one run of sst with seed 11711"):
        systems((None, one), (None, two))
    assert len(systems(("x", one), ("y", two))) == 2
    (one / "metrics.json").unlink()
    with pytest.raises(UserError, match="expected a finished run, found unfinished"):
        systems((None, one))
    with pytest.raises(UserError, match="expected a run with a config"):
        systems((None, tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"data": "one"}, {"data": "two"}, "data 'one'"),
        ({"tasks": {"sst": {"head": "softmax"}}}, {}, "head of sst 'softmax'"),
    ],
)
def test_runs_that_differ_in_more_than_tasks_and_seed_are_not_merged(
    make_run, first, second, expected
):
    one, two = (
        make_run(name, **{"tasks": ["sst"], "skill": 0.2, "seed": seed, **settings})
        for name, seed, settings in (("a", 1, first), ("b", 2, second))
    )
    with pytest.raises(UserError, match=rf"b: expected, as a run of the system single, {expected}"):
        systems((None, one), (None, two))
    assert len(systems(("x", one), ("x", two))) == 1


def test_runs_on_files_with_other_content_are_not_merged(make_run):
    folders = [make_run("a", ["sst"], 0.2, 1), make_run("b", ["sst"], 0.3, 2)]
    write_json(folders[0] / "data.json", {"sst train": "0", "sst test": "0"})
    assert len(systems(*((None, one) for one in folders))) == 1, "checksums of b are not known"
    write_json(folders[1] / "data.json", {"sst train": "0", "sst test": "1"})
    assert len(systems(*((None, one) for one in folders))) == 1
    write_json(folders[1] / "data.json", {"sst train": "1"})
    with pytest.raises(UserError, match=r"b: expected, as .*, checksum of sst train '0', which"):
        systems(*((None, one) for one in folders))


def test_runs_that_start_from_different_ones_are_not_merged(make_run):
    starts = [("x", "sts", 1), ("z", "sts", 2), ("y", "qqp", 1)]
    runs = []
    for seed, (name, task, number) in enumerate(starts):
        start = str(make_run(name, [task], 0.2, number))
        runs.append((None, make_run(f"r{seed}", ["sst"], 0.3, seed, init=start)))
    assert len(systems(*runs[:2])) == 1
    with pytest.raises(UserError, match=r"r2: expected, as a run of the system .*, start "):
        systems(*runs)


def test_runs_of_other_examples_are_not_averaged(make_run):
    one, two = make_run("a", ["sst"], 0.2, 1), make_run("b", ["sst"], 0.3, 2)
    file = two / "predictions" / scores_name("sst", "dev")
    write_scores(file, read_scores(file).rows(np.arange(40)))
    with pytest.raises(UserError, match=r"b: expected the examples of .*a, found others"):
        score_systems(systems((None, one), (None, two)))


def test_merged_runs_have_no_seed_unless_it_chose_their_members(make_run, tmp_path):
    runs = [make_run(name, ["sst"], skill) for name, skill in (("a", 0.2), ("b", 0.3))]
    for method, seed in (("vote", NO_SEED), ("greedy", 7)):
        ensemble_runs({"sst": runs}, method, 7, tmp_path / method)
        (merged,) = systems((method, tmp_path / method))
        assert merged.seeds("sst") == [seed]
    vote, alone = score_systems(systems(("vote", tmp_path / "vote"), ("a", runs[0])))
    assert paired_cells(vote, alone) == []
    assert "(no seed and 11711)" in as_markdown(compare([vote, alone]))
    assert (alone.real_seeds("sst"), vote.real_seeds("sst")) == ([11711], [])
    (axis,) = forest_plot(compare([vote, alone])).axes
    assert "\nmean of seed 11711; " in "\n".join(text.get_text() for text in axis.findobj(Text))


def test_examples_that_selected_an_ensemble_are_left_out_of_every_system(make_run, tmp_path):
    runs = [make_run(name, ["sst"], skill) for name, skill in (("a", 0.2), ("b", 0.3))]
    ensemble_runs({"sst": runs}, "greedy", 11711, tmp_path / "greedy")
    alone, merged = score_systems(systems(("a", runs[0]), ("merged", tmp_path / "greedy")))
    table = read_scores(tmp_path / "greedy" / "predictions" / scores_name("sst", "dev"))
    left = set(table.ids[~table.selected_on])
    for scored in (alone, merged):
        assert set(scored.scores["sst", 11711].ids) == left
        assert len(left) == 40
    kept = json.loads((tmp_path / "greedy" / "metrics.json").read_text())
    assert merged.metrics["sst"][11711] == kept["dev"]["sst"]
    assert alone.metrics["sst"][11711] == kept["members"]["sst"]["dev"]["a"]
    assert "| sst | 40 | 80 |" in as_markdown(compare([alone, merged]))
    (plain,) = score_systems(systems(("a", runs[0])))
    assert len(plain.scores["sst", 11711].ids) == 80


def test_the_system_of_the_first_run_is_the_baseline_whatever_its_name(make_run):
    runs = [make_run(f"r{n}", ["sst"], skill) for n, skill in enumerate((0.2, 0.3))]
    found = compare(score_systems(systems(("z", runs[1]), ("a", runs[0]))))
    assert found.first.system.name == "z"
    assert [one.system for one in found.differences] == ["a"]
    text = as_markdown(found)
    assert "Against z" in text
    assert "McNemar p, one run (seed)" in text
