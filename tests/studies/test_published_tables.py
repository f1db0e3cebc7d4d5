"""The pages in results/ are those of the stored cells and notes there, by their own command."""

import argparse
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from cli import reproduce as mode
from studies.reproduce import page_of, title_and_notes, with_tuned_settings
from studies.results import Results
from studies.study import Report, find_study

RESULTS = Path(__file__).parents[2] / "results"
COMMAND = "python run.py --mode reproduce "
PAGES = [file.stem for file in RESULTS.glob("*.md") if f"\n`{COMMAND}" in file.read_text()]
COUNTS = re.compile(r"(?<=## Data \(Table 1\)\n\n).*?(?=\n\n## )", re.S)  # of the data, not here


def written_again(page, tmp_path):
    """Return the page that its command writes from stored cells."""
    (line,) = re.findall(f"^`{COMMAND}(.*)`$", page, re.M)
    parser = argparse.ArgumentParser()
    mode.add_flags(parser)
    args = parser.parse_args(shlex.split(line.replace("--data DIR", "--data data")))
    study = find_study(args.table)
    request = mode.request_of(args, study)
    results = Results(RESULTS / request.results.name)
    request = replace(request, results=results.folder, runs=tmp_path, stored_only=True)
    request = with_tuned_settings(study, request)
    return page_of(study, Report(results, request, study.cells(request), ()))


def test_every_study_of_a_paper_has_a_page():
    assert {"bees", "scl_moo", "supercontext", "lacon"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_command_writes(name, tmp_path):
    published = (RESULTS / f"{name}.md").read_text()
    text = written_again(published, tmp_path)
    if name.startswith("scl_moo"):
        published, text = (COUNTS.sub("", page) for page in (published, text))
    assert text == published


def test_notes_and_their_heading_are_on_the_page(tmp_path):
    study, file = find_study("sharing"), tmp_path / "notes.md"
    assert title_and_notes(study, tmp_path) == (study.title, "")
    file.write_text("What the machine was.\n")
    assert title_and_notes(study, tmp_path) == (study.title, "What the machine was.\n")
    file.write_text("\ufeff# Another title\n\nWhat the machine was.\n", "utf-8")
    title, notes = title_and_notes(study, tmp_path)
    assert (title, notes.strip()) == ("Another title", "What the machine was.")
    file.write_text("# \n\nWhat the machine was.\n")
    assert title_and_notes(study, tmp_path)[0] == study.title


def test_the_page_is_beside_the_results_wherever_they_are(tmp_path, monkeypatch):
    study, here = find_study("sharing"), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert study.page_path(Path("results/sharing")) == Path("results/sharing.md")
    assert study.page_path(Path(".")) == tmp_path / "here.md"
    assert study.page_path(Path("..")) == tmp_path.with_name(f"{tmp_path.name}.md")
