"""Tables, sentences, figures and the page of affinities."""

import re
from itertools import combinations

import numpy as np
import pytest

from multitask.affinity.groups import Group, Grouping
from multitask.affinity.measures import Measures
from multitask.affinity.result import affinity_of
from reports.affinity import (
    gain_table,
    group_table,
    grouping_text,
    notes,
    sentence,
    sentences,
    verdict,
    write_report,
)
from reports.affinity_figures import affinity_figures

PARTS = ("embeddings", "layer 1")
EVIL = "<script>"


@pytest.fixture
def points(monkeypatch):
    """Measures whose look-ahead effects (m, m) vary little, and gradients with the same signs."""

    def make(effects, rounds=8):
        generator, tasks = np.random.default_rng(0), len(effects)
        noise = generator.normal(0, 1e-4, size=(rounds, tasks, tasks))
        noise -= noise.mean(0)
        given = effects + noise
        monkeypatch.setattr("multitask.affinity.estimators.look_ahead", lambda *_: given)
        rows = generator.normal(size=(rounds, tasks, 20))
        grams = np.eye(tasks) + (effects + effects.T) / 2 + noise
        return [Measures(np.ones((rounds, tasks)), np.stack([grams] * 2, 1), rows, PARTS, 2.5)]

    return make


@pytest.fixture
def three(points):
    effects = np.array([[0, 0.05, -0.03], [0.04, 0, 0], [-0.02, 0, 0]])
    return affinity_of(("sst", "qqp", "sts"), points(effects), [7], "lookahead", 2, 60.0)


@pytest.fixture
def many(points):
    effects = np.where(np.arange(9)[:, None] % 3 == np.arange(9) % 3, 0.05, -0.05)
    names = tuple(f"t{EVIL if k == 4 else k}" for k in range(9))
    return affinity_of(names, points(effects), [7], "gram", 3, 60.0)


def test_a_sentence_says_what_the_intervals_of_both_directions_say(three):
    found = sentences(three)
    assert re.fullmatch(
        r"sst helps qqp \(\+5\.000 %, \+\d.* to \+\d.*\), and qqp helps sst \(\+4\.000 %, .*\)\.",
        found[0],
    )
    assert found[1].startswith("sst hurts sts (−3.000 %, ")
    assert "but" not in found[1]
    assert "qqp has no clear effect on sts (" in found[2]


def test_a_sentence_joins_different_effects_by_but(three):
    ends = three.chosen.ends
    ends[:, 0, 1] = -0.1, 0.1
    assert "sst has no clear effect on qqp" in sentence(three, 0, 1)
    assert ", but qqp helps sst" in sentence(three, 0, 1)


def test_cosines_have_one_sentence_for_both_directions(many):
    found = sentences(many)
    assert re.match(r"The gradients of t0 and t3 agree \(cosine \+0\.0\d\d, ", found[2])
    assert found[0].startswith("The gradients of t0 and t1 are in conflict (cosine −0.0")


def test_the_table_has_the_gain_of_each_column_with_each_row(three):
    header, rows = gain_table(three)
    assert header == ["gain of", "sst", "qqp", "sts"]
    assert [row[0] for row in rows] == ["with sst", "with qqp", "with sts"]
    assert [rows[k][k + 1] for k in range(3)] == ["", "", ""]
    assert rows[0][2:] == ["+5.000*", "−3.000*"]


def test_groups_name_the_tasks_that_they_serve(three):
    groups = (Group((0, 1), (0, 1)), Group((1, 2), (2,)))
    assert grouping_text(three, Grouping(groups, 0.1)) == "sst + qqp; qqp + sts for sts"
    header, rows = group_table(three)
    assert header == ["groups at most", "trained together", "sum of gains"]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[1][1] == "sst + qqp; sts"
    assert verdict(three) == (
        f"With at most 2 groups, the sum of gains is largest ({rows[1][2]}, by lookahead) for: "
        "sst + qqp; sts."
    )


def test_above_eight_tasks_the_groups_are_clusters(many):
    best = many.chosen.best
    assert [one.tasks for one in best.groups] == [(0, 3, 6), (1, 4, 7), (2, 5, 8)]
    assert all(one.tasks == one.serves for one in best.groups)


def test_notes_say_what_a_gain_is_and_of_seeds_only_if_there_are_several(three):
    assert "1 % of the sum of the losses" in notes(three)
    assert "and seeds" not in notes(three)


@pytest.mark.filterwarnings("error::UserWarning")  # of figures that are too small for their texts
def test_the_page_is_whole_escapes_names_and_is_the_same_again(points, three, many, tmp_path):
    for found in (three, many):
        write_report(found, tmp_path)
        page = (tmp_path / "affinity.html").read_text("utf-8")
        assert f"<title>Affinity: {found.tasks[0]} | " in page
        assert EVIL not in page
        for a, b in combinations(found.tasks, 2):
            assert f"{a} and {b}".replace(EVIL, "&lt;script&gt;") in page
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(set(ids)) == len(ids)
        assert not re.search(r'(src|href)="http', page)
        write_report(found, tmp_path)
        assert (tmp_path / "affinity.html").read_text("utf-8") == page
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    assert names == {f"{n}.{kind}" for n in ("gains", "tree") for kind in ("svg", "pdf")}
    two = affinity_of(("a", "b"), points(np.zeros((2, 2))), [7], "linear", 2, 60.0)
    assert list(affinity_figures(two)) == ["Gains"]  # two tasks are no tree
