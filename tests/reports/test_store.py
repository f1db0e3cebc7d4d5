"""Metrics of a run's folder, whatever the names of its tasks are."""

import pytest

from common.json_files import write_sealed
from reports.store import read_metrics


@pytest.mark.parametrize("name", ["overall-satisfaction", "recall", "precision", "f1"])
def test_tasks_may_have_the_names_of_metrics(name, tmp_path):
    content = {
        "dev": {name: {"accuracy": 0.5}},
        "by_class": {"dev": {name: {"recall": {"recall": 0.5, "support": 320}}}},
        "cut_texts": {name: [0, 320]},
        "history": [],
    }
    write_sealed(tmp_path / "metrics.json", content)
    assert read_metrics(tmp_path)["cut_texts"] == {name: [0, 320]}
