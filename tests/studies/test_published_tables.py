"""The tables in results/ are those of the kept cells there, without cells of mended faults."""

from pathlib import Path

import pytest

from multitask.config import RunConfig
from reports.cells import read_cell
from studies import find_study
from studies.faults import left_out_notice
from studies.reproduce import page_of, with_tuned_settings
from studies.results import Results
from studies.study import Report, StudyRequest

RESULTS = Path(__file__).parents[2] / "results"
# By page: a cell of the study that shows what was asked for, and which of its settings were.
NOT_IN_PAPER = {
    "bees": ("M4", ("epochs",)),
    "mixing": ("round-robin-joint-sum", ("limit",)),
    "regularisation": ("sts-plain", ("limit",)),
    "sharing": ("sst", ()),
    "similarity-scale": ("0-1", ()),
    "smart-place": ("plain", ()),
    "branching": ("single", ("limit",)),
    "supercontext": ("given-trec-ce", ()),
    "supercontext-2000": ("small-sst-ce", ("limit", "dev_limit")),
}


@pytest.mark.parametrize("name", NOT_IN_PAPER)
def test_tables_are_of_kept_cells_and_say_what_is_left_out(name, tmp_path):
    study, (cell, keys) = find_study(name.removesuffix("-2000")), NOT_IN_PAPER[name]
    config = read_cell(RESULTS / name / f"{cell}.json")["config"]
    asked = {key: config[key] for key in keys}
    epochs = asked.pop("epochs", None)
    base = RunConfig(mode="single", tasks=(), data=config["data"], precision="bf16", **asked)
    request = StudyRequest(base, RESULTS / name, tmp_path, epochs=epochs, stored_only=True)
    request = with_tuned_settings(study, request)
    cells = study.cells(request)
    text = page_of(study, Report(Results(RESULTS / name), request, cells, ()))
    published = (RESULTS / f"{name}.md").read_text()
    tables = [
        [line for line in page.splitlines() if line.startswith("|")] for page in (text, published)
    ]
    assert tables[0] == tables[1]
    assert left_out_notice(Results(RESULTS / name).faults(cells)) in published
