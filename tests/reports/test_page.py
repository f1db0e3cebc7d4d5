"""The page of a comparison: whole in one file, escaped, the same for the same runs."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from reports.comparison_tables import comparison_page, disagreements, distances, sections
from reports.figures import all_figures, confusion_counts, svg
from reports.store import read_run
from reports.systems import group_runs, score_systems
from tasks import CS224N, build_task, data_folder
from tasks.predictions import Scores, scores_name, write_scores

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def pair(make_run):
    """Two multi-task runs with histories, telemetry and the sample's examples."""
    named = []
    for number, (name, skill) in enumerate((("plain", 0.2), (EVIL, 0.4))):
        folder = make_run(f"run{number}", CS224N, skill)
        write_sample_scores(folder, skill)
        rest = {"qqp": {"accuracy": 0.5}, "sts": {"pearson": 0.1}}
        history = [{"epoch": e, "dev": rest | {"sst": {"accuracy": e / 9}}} for e in range(1, 4)]
        (folder / "metrics.json").write_text(json.dumps({"dev": {}, "history": history}))
        lines = [telemetry_line(step) for step in range(1, 200)]
        (folder / "telemetry.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        named.append((name, read_run(folder)))
    return score_systems(group_runs(named))


def write_sample_scores(folder, skill):
    """Scores of the sample's own dev examples in the place of invented ones."""
    draw = np.random.default_rng(int(100 * skill))
    for task in CS224N:
        found = build_task(task).read(data_folder("sample"), "dev")
        if task == "sts":
            scores = found.targets + draw.normal(size=len(found))
        else:
            scores = draw.dirichlet(np.ones(found.targets.max() + 1), size=len(found))
        file = folder / "predictions" / scores_name(task, "dev")
        write_scores(file, Scores(np.array(found.ids), scores, found.targets))


def telemetry_line(step):
    pairs = {"sst and qqp": -0.1, "sst and sts": 0.2}
    return {
        "step": step,
        "weights": {"sst": 1.0, "qqp": 1.0 + step / 100},
        "layers": {"embeddings": pairs, "layer 1": pairs},
    }


class Reader(HTMLParser):
    """Tags, and what they refer to."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.links.append(value)


def test_the_page_is_whole_runs_nothing_and_is_the_same_for_the_same_runs(pair):
    page, reader = comparison_page(pair, sections(pair)), Reader()
    reader.feed(page)
    assert not {"script", "link", "iframe", "img", "object"} & set(reader.tags)
    inside = [link for link in reader.links if link.startswith("#")]
    pictures = [link for link in reader.links if link.startswith("data:image/png;base64,")]
    assert len(inside) + len(pictures) == len(reader.links)
    assert len(set(reader.ids)) == len(reader.ids)
    assert {link[1:] for link in inside} <= set(reader.ids)
    assert reader.tags.count("svg") == 3 + 2 + 1 + 2 + 2
    assert EVIL not in page
    assert "&lt;script&gt;" in page
    assert comparison_page(pair, sections(pair)) == page


def test_every_figure_has_a_title_for_screen_readers(pair):
    figures = all_figures(pair)
    assert list(figures)[:3] == [
        "Learning curves",
        "Sentiment: labels and predictions",
        "Similarity: labels and predictions",
    ]
    (drawing, *_) = figures["Learning curves"]
    assert 'aria-label="Learning &amp; curves"' in svg(drawing, "Learning & curves")
    assert not re.search(r"<dc:date>", svg(drawing, "x"))


def test_confusion_counts_are_scikit_learns(pair):
    from sklearn.metrics import confusion_matrix

    scores = pair[0].scores["sst", 11711]
    expected = confusion_matrix(scores.targets, scores.values.argmax(1))
    np.testing.assert_array_equal(confusion_counts(pair[0], "sst", 11711), expected)


@pytest.mark.parametrize("task", CS224N)
def test_the_examples_that_systems_disagree_on_most(pair, task):
    found = disagreements(pair, task, count=5)
    one, other = (scored.scores[task, 11711] for scored in pair)
    distance = np.abs(one.values.astype(float) - other.values).reshape(len(one.ids), -1).sum(1)
    examples = build_task(task).read(data_folder("sample"), "dev")
    row = int(np.argmax(distance))
    assert found[0].texts == tuple(column[row] for column in examples.texts)
    assert len(found) == 5
    assert all(len(one.predictions) == 2 for one in found)


def test_one_system_or_other_data_has_no_disagreements(pair, make_run):
    assert disagreements(pair[:1], "sst") is None
    named = [(name, read_run(make_run(name, ["sst"], 0.3))) for name in ("x", "y")]
    strange = score_systems(group_runs(named))
    assert disagreements(strange, "sst") is None


def write_nearly_alike(folder, number, differing):
    """What a run predicts of the sample's dev examples, another than the first run's on some.

    The probabilities of examples on which the runs agree are further apart.
    """
    for task in CS224N:
        found = build_task(task).read(data_folder("sample"), "dev")
        rows = np.arange(len(found))
        moved = np.isin(rows, differing) & (number == 1)
        scores = np.full(len(rows), 3.0) + 0.001 * number + 0.5 * moved
        if task != "sts":
            near = np.isin(rows, differing)
            first = np.where(near, 0.51 - 0.02 * moved, 0.99 - 0.4 * number)
            scores = np.zeros((len(rows), found.targets.max() + 1))
            scores[:, 0], scores[:, 1] = first, 1 - first
        file = folder / "predictions" / scores_name(task, "dev")
        write_scores(file, Scores(np.array(found.ids), scores, found.targets))


@pytest.mark.parametrize("differing", [[], [7], [3, 5, 9]])
def test_only_examples_that_are_predicted_differently_are_disagreements(make_run, differing):
    named = []
    for number in range(2):
        folder = make_run(f"run{number}", CS224N, 0.3)
        write_nearly_alike(folder, number, differing)
        named.append((f"system {number}", read_run(folder)))
    systems = score_systems(group_runs(named))
    for task in CS224N:
        found = disagreements(systems, task)
        examples = build_task(task).read(data_folder("sample"), "dev")
        expected = {tuple(column[row] for column in examples.texts) for row in differing}
        assert {one.texts for one in found} == expected
        assert all(len(set(one.predictions)) == 2 for one in found)
    page = comparison_page(systems, sections(systems))
    assert ("On no dev example" in page) == (not differing)
    assert page.count("where the systems disagree the most") == 3


def test_distances_are_total_variation_or_differences():
    values = np.array([[[0.8, 0.2, 0.0]], [[0.5, 0.0, 0.5]], [[0.6, 0.3, 0.1]]])
    assert distances(values[0], values[1]) == pytest.approx(0.5)
    assert distances(np.array([1.0, 4.0]), np.array([2.0, 1.5])).tolist() == [1.0, 2.5]
