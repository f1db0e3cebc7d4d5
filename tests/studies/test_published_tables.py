"""The tables in results/ are those of the kept cells there, without cells of fixed faults."""

import re
from pathlib import Path

import pytest

from multitask.config import RunConfig
from studies import find_study
from studies.faults import left_out_notice
from studies.reproduce import page_of, with_tuned_settings
from studies.results import Results
from studies.study import Report, StudyRequest

RESULTS = Path(__file__).parents[2] / "results"
MEAN = {"lr": 1e-4, "changes": {"pooling": "mean"}}
# By page: what its command asks for.
ASKED = {
    "affinity": {"limit": 2000},
    "bees": {"epochs": 3},
    "branching": {"limit": 0.25},
    "lacon": MEAN,
    "lacon-200": {"limit": 200, "epochs": 5, "lr": 1e-4},
    "mixing": {"limit": 8000},
    "regularisation": {"limit": 3000},
    "scl_moo": MEAN | {"epochs": 30},
    "scl_moo-cls": {"lr": 1e-4},
    "sharing": {},
    "sharing-gpu": {},
    "similarity-scale": {},
    "smart-place": {"limit": 4000},
    "supercontext": {},
    "supercontext-2000": {"limit": 2000, "dev_limit": 1000},
}
FIRST_ONLY = ("scl_moo", "scl_moo-cls")  # another table counts examples in the data
LIMITS = ("limit", "dev_limit")


def tables_of(page):
    """Return the tables of a page, each as its lines."""
    return [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]


@pytest.mark.parametrize("name", ASKED)
def test_tables_are_of_kept_cells_and_say_what_is_left_out(name, tmp_path):
    study = find_study(re.sub(r"-\d+$|-cls$|-gpu$", "", name).replace("_", "-"))
    asked = dict(ASKED[name])
    limits = {key: asked.pop(key) for key in LIMITS if key in asked}
    base = RunConfig(mode="single", tasks=(), data="data", precision="bf16", **limits)
    request = StudyRequest(base, RESULTS / name, tmp_path, stored_only=True, **asked)
    request = with_tuned_settings(study, request)
    cells = study.cells(request)
    text = page_of(study, Report(Results(RESULTS / name), request, cells, ()))
    published = (RESULTS / f"{name}.md").read_text()
    ours, theirs = (
        tables_of(page)[: 1 if name in FIRST_ONLY else None] for page in (text, published)
    )
    assert ours == theirs
    assert left_out_notice(Results(RESULTS / name).faults(cells)) in published
