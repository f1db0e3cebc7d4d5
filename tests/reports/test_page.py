"""The page of a comparison: whole in one file, escaped, the same for the same runs."""

import json
import re
import resource
import shutil

import numpy as np
import pytest
from scored_runs import scored_run

import cli
from multitask.runs import Run
from reports.comparison import compare
from reports.comparison_tables import comparison_page
from reports.examples import example_section
from reports.figures import all_figures, save_figure
from reports.scores import read_tasks
from reports.systems import group_runs
from tasks import CS224N, build_task, data_folder
from tasks.predictions import Scores, scores_name, write_scores

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two multi-task runs on the sample's examples."""
    named, place = [], tmp_path_factory.mktemp("pair")
    for number, (name, skill) in enumerate((("plain", 0.2), (EVIL, 0.4))):
        folder = scored_run(place / f"run{number}", CS224N, skill)
        write_sample_scores(folder, skill)
        named.append((name, Run(folder)))
    return group_runs(named)


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


def examples_of(systems, task):
    return example_section(read_tasks(systems)[task], systems)


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    def make(systems):
        comparison, files = compare(systems), []
        for name, figure in all_figures(comparison).items():
            files.append(tmp_path_factory.getbasetemp() / f"{name}.svg")
            save_figure(figure, files[-1])
        return comparison_page(comparison, files)

    return make


@pytest.fixture(scope="module")
def page(pair, page_of):
    return page_of(pair)


def test_the_page_is_whole_runs_nothing_and_is_the_same_for_the_same_runs(pair, page, page_of):
    assert not re.search("<(script|link|iframe|object)", page)
    links, ids = re.findall('(?:href|src)="(.*?)"', page), re.findall(' id="(.*?)"', page)
    inside = [link for link in links if link.startswith("#")]
    pictures = [link for link in links if link.startswith("data:image/svg+xml;base64,")]
    assert len(inside) + len(pictures) == len(links)
    assert len(set(ids)) == len(ids)
    assert {link[1:] for link in inside} <= set(ids)
    assert len(pictures) == 1 + 3 * 2
    assert EVIL not in page
    assert "&lt;script&gt;" in page
    assert page_of(pair) == page


def test_the_page_opens_with_the_verdict_and_links_to_every_section(page):
    opening = page[page.index("<h1>") : page.index("<h2")]
    assert '<p class="verdict">No clear difference overall: ' in opening
    assert re.search(r"dev examples: sst 300, qqp 300, sts 300", opening)
    headings = re.findall(r'<h2 id="([^"]+)"', page)
    assert re.findall(r'<li><a href="#([^"]+)"', opening) == headings
    assert 'class="best"' in page


def test_answers_have_the_names_of_classes_and_right_ones_are_marked(pair):
    found = examples_of(pair, "sst")
    header, rows = found.table
    assert header == ["example", "label", "plain", EVIL]
    names = {"very negative", "negative", "neutral", "positive", "very positive"}
    for number, (_, label, *answers) in enumerate(rows):
        assert {label, *answers} <= names
        right = [(number, place) in found.best for place in (2, 3)]
        assert right == [answer == label for answer in answers]


@pytest.mark.parametrize("task", CS224N)
def test_the_examples_that_systems_disagree_on_most(pair, task):
    _, rows = examples_of(pair, task).table
    one = read_tasks(pair)[task]
    first, second = one.values.values()
    distance = np.abs(first.astype(float) - second).reshape(len(one.ids), -1).sum(1)
    examples = build_task(task).read(data_folder("sample"), "dev")
    row = examples.ids.index(one.ids[np.argmax(distance)])
    assert rows[0][0] == "\n".join(column[row] for column in examples.texts)
    assert len(rows) == 10
    assert all(first != second for _, _, first, second in rows)


def test_a_lone_run_has_its_largest_errors(pair, page_of):
    _, rows = examples_of(pair[:1], "sts").table
    one = read_tasks(pair[:1])["sts"]
    (values,) = one.values.values()
    errors = np.sort(np.abs(values.astype(float) - one.targets))[::-1]
    shown = [abs(float(label) - float(found)) for _, label, found in rows]
    assert shown == pytest.approx(errors[:10], abs=0.011)
    assert all(label != found for _, label, found in examples_of(pair[:1], "sst").table[1])
    assert "Largest errors on qqp</h2>" in page_of(pair[:1])


def test_other_data_has_no_examples_and_equal_runs_no_disagreement(pair, make_run):
    strange = group_runs([(name, Run(make_run(name, ["sst"], 0.3))) for name in ("x", "y")])
    alike = group_runs([(name, pair[0].runs[0]) for name in "ab"])
    assert examples_of(strange, "sst").table[1] == examples_of(alike, "sst").table[1] == []


def test_texts_of_a_file_that_has_changed_are_not_shown(pair, tmp_path):
    runs = [shutil.copytree(one.runs[0].folder, tmp_path / str(n)) for n, one in enumerate(pair)]
    assert examples_of(group_runs([(str(r), Run(r)) for r in runs]), "sst").table[1]
    (runs[1] / "data.json").write_text(json.dumps({"sst dev": "0" * 64}))
    changed = group_runs([(str(r), Run(r)) for r in runs])
    assert not examples_of(changed, "sst").table[1]
    assert examples_of(changed, "qqp").table[1]


def test_a_full_disk_is_one_line(make_run, tmp_path, capsys):
    output = tmp_path / "out"
    runs = str(make_run("a", ["sst"], 0.2))
    command = ["--mode", "compare", "--runs", runs, "--output", str(output)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))  # as a full disk
    status = cli.main(command)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 1
    assert re.fullmatch("run.py: .*/figures/.*pdf: File too large\n", capsys.readouterr().err)
