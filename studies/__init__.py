"""Studies: cells of runs, the tables built from them, and comparisons with papers' figures.

To add a study, write a module with a `STUDY` and add a line here.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.study import Study

STUDIES = {  # keys are the values of --table
    "bees": "studies.bees.study:STUDY",
    "sharing": "studies.sharing:STUDY",
    "scl-moo": "studies.scl_moo.study:STUDY",
    "supercontext": "studies.supercontext.study:STUDY",
    "lacon": "studies.lacon.study:STUDY",
}


def find_study(name: str) -> Study:
    """Import the module of a study and return the study."""
    return resolve_name(STUDIES[name])
