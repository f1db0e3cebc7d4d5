"""The files of the papers: rows that can be run, terms that exist, pages of at most 900 words."""

import json
import re
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import pytest

from papers import PAGES, PAPERS
from papers.content import content_of
from papers.figures import draw
from papers.page import differences_of, evidence_of, page, sentence
from papers.paper import Cell, find_paper, merged
from papers.runs import Place, config_of
from papers.store import Figure, Store, write_figures

RESULTS = Path(__file__).parents[2] / "results"
STAMP = ("0123abcd", "machine", "2026-11-29")
WORDS = {"combiners": 1200}  # of a page; of the others 900
LAYERS = ["all layers", "embeddings", *(f"layer {number}" for number in range(1, 7))]
OF_ROWS = ["step", *LAYERS]  # figures of whole runs, of the table of combiners


@pytest.mark.parametrize("name", PAPERS)
def test_every_row_can_be_run_with_every_point_of_its_grid(name, tmp_path):
    paper = find_paper(name)
    place = Place("sample", tmp_path, Store(tmp_path, name))
    for row, one in paper.rows.items():
        if one.members:
            assert {member for several in one.members.values() for member in several} <= {
                *paper.rows
            }
            continue
        assert {one.start, one.like} - {None} <= {*paper.rows}
        assert paper.tuning_seed not in one.seeds
        grids = [paper.rows[tuned].grid.values() for tuned in paper.tuned_rows(row)]
        for points in product(*grids):
            config = config_of(merged(one.settings, *points), 1, place)
            assert [*config.tasks] == [*one.settings["tasks"]]


def fill(name, folder):
    """Store a figure of everything that the rows of a paper have, without training."""
    paper, figures = find_paper(name), []
    metrics = content_of(name).metrics
    extras = ["share of steps at a vertex", "pull", "push"]
    extras += [f"label {i} predicted {k}" for i in range(5) for k in range(5)]
    extras += [f"{what} from {low / 2:g}" for what in ("label", "prediction") for low in range(10)]
    of_rows, extras = (OF_ROWS, []) if name == "combiners" else ([], extras)
    for row, one in paper.rows.items():
        tasks = [*(one.members or one.settings["tasks"]), "all", *of_rows]
        for seed, (place, task) in product(one.seeds, enumerate(tasks)):
            metric = metrics.get(task, metrics.get("default"))
            value = 0.5 + 0.001 * ((7 * seed + 13 * len(figures)) % 11 + place)
            figures += [
                Figure(row, task, seed, split, key, value, *STAMP)
                for split in ("dev", "test", "train")
                for key in ([metric] if metric else []) + (extras if task != "all" else [])
            ]
    write_figures(folder / f"{name}.csv", figures)


@pytest.mark.parametrize("name", PAPERS)
def test_a_whole_page_is_short_and_has_a_verdict_for_every_claim(name, tmp_path):
    fill(name, tmp_path)
    draw(name, tmp_path)
    text, content = page(name, tmp_path), content_of(name)
    assert len(text.split()) <= WORDS.get(name, 900)
    assert len(content.summary) == 3
    evidence = evidence_of(content, Store(tmp_path, name))
    known = differences_of(content, evidence)
    assert not known.keys() & find_paper(name).rows.keys()  # a term is a claim or a row
    notes = [note for table in content.tables for note in table.notes]
    for one in (*content.summary, *content.differs, *notes):
        assert sentence(one, known, evidence), one
    for table, row in [(one, row) for one in content.tables for row in one.rows]:
        assert {"text", "of", *table.columns} >= {*table.rows[row]}
        assert {*table.columns} >= {*table.forms, *table.rows[row].get("of", {})}
        cells = [table.source(row, column) for column in table.columns]
        assert any(evidence.on(table.split).scores(*cell) for cell in cells), row
    claims = re.search(r"## Claims\n\n(.*?)\n\n", text, re.DOTALL)[1].splitlines()[2:]
    assert len(claims) == len(content.claims) <= 8
    assert all(re.fullmatch(r"\|.*\|[+-][\d.]+\|.* to .*\|\d+\|\*.*\*\|", one) for one in claims)
    assert "{" not in text
    has_figure = (tmp_path / f"{name}.png").exists()
    assert has_figure == bool(content.figure) == (f"]({name}.png)" in text)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_without_runs_has_blank_cells_and_no_verdict(name, tmp_path):
    text = page(name, tmp_path)
    assert "±" not in re.sub(r"\d±[\d.]+ /", "", text)
    assert "*|" not in text
    assert "```bash\npython " in text


@pytest.mark.parametrize("name", PAGES)
def test_a_stored_page_is_that_of_its_figures(name):
    assert page(name, RESULTS) == (RESULTS / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize("name", PAPERS)
def test_stored_rows_have_the_settings_that_the_paper_s_file_says(name):
    paper, store = find_paper(name), Store(RESULTS, name)
    stored = {one.row for one in store.figures}
    assert stored == store.settings.keys()
    for row in stored:
        cell = Cell(row, 1)
        assert cell.row in paper.rows
        assert store.settings[row] == paper.record(cell, store)
    tuned = {one.start for one in paper.rows.values()}  # runs of a grid begin with these
    for one in store.figures:
        cell = Cell(one.row, one.seed)
        seeds = () if cell.point else paper.rows[cell.row].seeds
        assert one.seed in seeds or (
            one.seed == paper.tuning_seed and (cell.point or one.row in tuned)
        )


def test_results_are_few_files_and_each_figure_has_its_origin():
    assert len([*RESULTS.rglob("*")]) <= 4 * len(PAPERS)
    for name in PAGES:
        for one in Store(RESULTS, name).figures:
            assert re.fullmatch(r"[0-9a-f]{8,}", one.commit)
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", one.date)
            assert one.machine
    for file in RESULTS.glob("*.json"):
        assert json.loads(file.read_text())["command"].startswith("python run.py --mode reproduce")


def test_the_readme_and_the_pages_quote_stored_figures():
    content = content_of("sharing")
    dev = evidence_of(content, Store(RESULTS, "sharing"))
    test, columns = dev.on("test"), ("sst", "qqp", "sts", "all")

    def quoted(evidence, row, task):
        values = [100 * one for one in evidence.scores(row, task).values()]
        return f"{fmean(values):.1f} ± {stdev(values):.1f}"

    shared, singles = "one-task-per-step", {task: f"{task}-held-out" for task in columns[:3]}
    singles["all"] = "+".join(singles.values())
    rows = {
        "one model of all three, 23 M parameters": dict.fromkeys(columns, f"{shared}-held-out"),
        "three single models, 68 M parameters": singles,
    }
    figures = {name: [quoted(test, of[one], one) for one in columns] for name, of in rows.items()}
    constant = [dev.scores("majority", task) for task in columns]
    figures["the most frequent class"] = [f"{100 * fmean(one.values()):.1f}" for one in constant]
    readme = (RESULTS.parent / "README.md").read_text("utf-8")
    for name, several in figures.items():
        assert f"| {name} | {' | '.join(several)} |" in readme
    text = (RESULTS.parent / "docs" / "multi-task.md").read_text("utf-8")
    line = f"{quoted(dev, shared, 'all')} overall on dev. Three encoders with three times the"
    assert f"{line} parameters score {quoted(dev, 'sst+qqp+sts', 'all')}" in " ".join(text.split())
