"""Studies: cells of runs, the tables made of them, the papers' figures beside ours.

A further study is a module with a `STUDY` and a line here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.study import Study

STUDIES = {  # by the names of --table
    "bees": "studies.bees.study:STUDY",
    "best": "studies.best:STUDY",
    "scl-moo": "studies.scl_moo.study:STUDY",
    "supercontext": "studies.supercontext.study:STUDY",
    "lacon": "studies.lacon.study:STUDY",
    "mixing": "studies.mixing:STUDY",
    "regularisation": "studies.regularisation:STUDY",
    "similarity-scale": "studies.defaults:SIMILARITY_SCALE",
    "smart-place": "studies.defaults:SMART_PLACE",
}


def find_study(name: str) -> Study:
    """Return the study of a name; its module is imported now."""
    module, _, attribute = STUDIES[name].partition(":")
    return getattr(import_module(module), attribute)
