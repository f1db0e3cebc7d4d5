"""GLUE-style tasks, read from GLUE's own files: tab-separated, never quoted, labels by name.

A further one is a line of `GLUE`: folder, columns, labels, and the files' names where they are not
GLUE's, such as `train.csv`, which may have commas and quotes. Files lie in `--data DIR` itself or
in its folder `glue`.
"""

from __future__ import annotations

from tasks.declared import Declared

GLUE = {
    "sst2": Declared("SST-2", ("sentence",), "label", ("0", "1"), names=("negative", "positive")),
    "cola": Declared(
        "CoLA",
        ("sentence",),
        "label",
        ("0", "1"),
        header=("source", "label", "mark", "sentence"),
        names=("unacceptable", "acceptable"),
    ),
    "mrpc": Declared(
        "MRPC",
        ("#1 String", "#2 String"),
        "Quality",
        ("0", "1"),
        names=("different", "equivalent"),
    ),
    "rte": Declared("RTE", ("sentence1", "sentence2"), "label", ("entailment", "not_entailment")),
    "qnli": Declared("QNLI", ("question", "sentence"), "label", ("entailment", "not_entailment")),
    "mnli": Declared(
        "MNLI",
        ("sentence1", "sentence2"),
        "gold_label",
        ("entailment", "neutral", "contradiction"),
        dev="dev_matched.tsv",
    ),
    "trec": Declared(
        "TREC",
        ("sentence",),
        "label",
        ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
        names=("abbreviation", "description", "entity", "human", "location", "number"),
    ),
}
