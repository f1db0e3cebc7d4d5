"""Studies: cells of runs, the tables built from them, and comparisons with papers' figures.

To add a study, write a module with a `STUDY` and add a line here.
"""

STUDIES = {  # keys are the values of --table
    "bees": "studies.bees.study:STUDY",
    "sharing": "studies.sharing:STUDY",
    "scl-moo": "studies.scl_moo.study:STUDY",
    "supercontext": "studies.supercontext.study:STUDY",
    "lacon": "studies.lacon.study:STUDY",
}
