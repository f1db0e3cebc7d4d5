"""Reliability diagrams of calibrated runs: what is drawn, and for which runs."""

import numpy as np
import pytest

from multitask.calibration import write_calibration
from multitask.storage.stored_runs import read_run
from reports.comparison import compare
from reports.comparison_figures import all_figures
from reports.comparison_page import comparison_page
from reports.reliability import reliability_diagram, reliability_tables, reliability_text
from reports.scored_systems import score_systems
from reports.systems import group_runs
from tasks import build_task
from tasks.calibration import reliability, temperature_scaled
from tasks.predictions import Scores, read_scores, scores_name, write_scores

TASKS = ("sst", "sts")
MARKED = np.arange(80) % 3 == 0


def mark(folder, tasks=TASKS):
    """Calibrate a run on every third dev example."""
    found = {}
    for name in tasks:
        file = folder / "predictions" / scores_name(name, "dev")
        table, calibrator = read_scores(file), build_task(name).kind.calibrator
        found[name] = calibrator.fit(table.values[MARKED], table.targets[MARKED])
        write_scores(file, Scores(table.ids, table.values, table.targets, selected_on=MARKED))
    write_calibration(folder, found)
    return found


@pytest.fixture
def runs(make_run):
    """Two seeds of a calibrated system, and a plain run of another, with calibrations by seed."""
    folders = {seed: make_run(f"run{seed}", TASKS, 0.3, seed=seed, epochs=2) for seed in (1, 2)}
    known = {seed: mark(folder) for seed, folder in folders.items()}
    named = [("plain", read_run(make_run("plain", TASKS, 0.4, seed=1)))]
    named += [("trusted", read_run(folder)) for folder in folders.values()]
    return score_systems(group_runs(named)), known, folders


def test_the_tables_are_those_of_all_seeds_on_the_other_examples(runs):
    (plain, trusted), known, folders = runs
    assert reliability_tables(plain, "sst") is None
    assert reliability_tables(trusted, "sts") is None
    tables, seeds = reliability_tables(trusted, "sst")
    before, after, targets = [], [], []
    for seed, folder in folders.items():
        table = read_scores(folder / "predictions" / scores_name("sst", "dev"))
        before += table.values[~MARKED].tolist()
        scaled = temperature_scaled(table.values[~MARKED], known[seed]["sst"].temperature)
        after += scaled.tolist()
        targets += table.targets[~MARKED].tolist()
    assert seeds == [1, 2]
    for name, several in (("before", before), ("after", after)):
        expected = reliability(np.array(several), np.array(targets))
        for one, other in zip(tables[name], expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert tables["before"].counts.sum() == 2 * (~MARKED).sum()


def test_the_diagram_shows_accuracy_by_confidence(runs):
    (plain, trusted), _, _ = runs
    assert reliability_diagram(plain, "sst") is None
    figure = reliability_diagram(trusted, "sst")
    (axis,) = figure.axes
    diagonal, *lines = axis.get_lines()
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    tables, _ = reliability_tables(trusted, "sst")
    for line, table in zip(lines, tables.values(), strict=True):
        filled = table.counts > 0
        np.testing.assert_array_equal(line.get_xdata(), table.confidence[filled])
        np.testing.assert_array_equal(line.get_ydata(), table.accuracy[filled])
        assert f"{table.error:.3f}" in line.get_label()
    written = " ".join(text.get_text() for text in axis.texts)
    assert "n = 53; sums of 2 seeds" in written
    text = reliability_text(trusted, "sst")
    assert f"after scaling, calibration error {tables['after'].error:.3f}" in text


def test_the_page_has_a_diagram_for_each_calibrated_task_with_classes(runs):
    systems, _, _ = runs
    comparison = compare(systems)
    drawings = all_figures(comparison)
    assert [one.name for one in drawings["Confidence and accuracy"]] == ["reliability-sst-2"]
    page = comparison_page(comparison, drawings)
    assert "Accuracy at each confidence on sst, trusted" in page
    assert "they selected members or calibrated runs" in page


def test_a_page_without_calibrated_runs_has_no_section(make_run):
    runs = [("plain", read_run(make_run("plain", TASKS, 0.4)))]
    assert "Confidence and accuracy" not in all_figures(compare(score_systems(group_runs(runs))))
