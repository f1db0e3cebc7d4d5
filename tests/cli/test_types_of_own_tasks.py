"""Classes with weights and several labels of a user's file: training, predictions, refusals."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from run_files import metrics

import cli

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
TAGS = f"tags={REQUESTS}:type=multi-label,text=message,label=tags"
URGENCY = f"urgency={REQUESTS}:type=classification,text=message,label=urgency"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on both tasks with class weights, and what it printed; read only."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    settings = ("--class-weights", "balanced", "--select-by", "macro_f1", "--encoder", "tiny")
    command = ("--mode", "multitask", "--task", TAGS, "--task", URGENCY, *settings)
    with redirect_stdout(StringIO()) as printed:
        assert cli.main([*command, "--epochs", "1", "--output", str(folder)]) == 0
    return folder, printed.getvalue()


def test_a_run_prints_weights_and_the_figures_of_each_class(trained):
    run, printed = trained
    assert "urgency: weights of classes: high " in printed
    assert "tags: weights of labels, relative to their absence: access " in printed
    assert re.search(r"^task +class +precision +recall +f1 +support$", printed, re.MULTILINE)
    figures = metrics(run)["by_class"]
    for task, names in figures["dev"].items():
        for name, one in names.items():
            cells = (f"{one[key]:.4f}" for key in ("precision", "recall", "f1"))
            line = " +".join([task, name, *cells, str(one["support"])])
            assert re.search(rf"^{line}$", printed, re.MULTILINE)
    for split, found in figures.items():
        f1 = [one["f1"] for one in found["tags"].values()]
        assert metrics(run)[split]["tags"]["macro_f1"] == pytest.approx(sum(f1) / 8)
