"""The rows of LaCon: Table 2, the ablations of Table 3, and few examples of each class (Table 4).

Zhang, Zhao, Chen and He (2022): "Label Anchored Contrastive Learning for Language Understanding".
"""

from __future__ import annotations

from collections.abc import Mapping

from papers.paper import Paper, Row, Settings, merged, rates

TASKS = ("sst2", "trec", "sst")
METHODS: Mapping[str, Settings] = {
    "ce": {},
    "leam": {"objective": {"name": "leam"}},
    "lsan": {"objective": {"name": "lsan"}},
    # ConSERT's weights 1 and 0.15 and its temperature (Yan et al., 2021, section 4.1).
    "cl": {"objective": {"name": "cl", "weight": 0.13, "temperature": 0.1}},
    # The most frequent values of Gunel et al. (2021), section 4.2.
    "scl": {"objective": {"name": "scl", "weight": 0.9, "temperature": 0.3}},
    "lacon": {"objective": {"name": "lacon"}},
    "lacon-fusion": {"objective": {"name": "lacon-fusion"}},
}
ABLATIONS: Mapping[str, Settings] = {  # of LaCon, in Table 3
    "single-head": {"objective": {"label_heads": 1}},
    "no-icl": {"objective": {"label_terms": ("lcl", "ler")}},
    "no-lcl": {"objective": {"label_terms": ("icl", "ler")}},
    "no-ler": {"objective": {"label_terms": ("icl", "lcl")}},
    "no-projection": {"objective": {"projection_layers": 0}},
}
PROJECTION: Settings = {"objective": {"name": "projection"}}  # cross-entropy behind the head
TEN, THREE = tuple(range(1, 11)), (1, 2, 3)
SHOTS = {"sst2": (20, 100), "trec": (20,), "sst": (20, 100)}  # TREC's rarest class has 74
COMMON: Settings = {
    "encoder": "minilm",
    "precision": "bf16",
    "pooling": "mean",
    "batch_size": 16,
    "drop_leaks": "own",
    "optimizer": {"warmup": 0.06},  # section 3.1
}
MANY: Settings = {"protocol": "held-out", "limit": 2000, "dev_limit": 500, "epochs": 3}
FEW: Settings = {"epochs": 20, "evaluate_every": 20, "keep": "last"}  # section 4.1
GRID = rates(3e-5, 1e-4, 3e-4)


def row(task: str, settings: Settings, like: str | None = None) -> Row:
    """Return a row of Table 2 or 3."""
    own = merged(COMMON, MANY, {"tasks": {task: {}}}, settings)
    return Row(own, THREE, {} if like else GRID, like)


def few(task: str, shots: int, method: str) -> Row:
    """Return a row of Table 4, tuned with 20 examples of each class."""
    drawn = {"protocol": {"name": "few-a-class", "shots": shots}}
    settings = merged(COMMON, FEW, drawn, {"tasks": {task: {}}}, METHODS[method])
    if shots == 20:
        return Row(settings, TEN, GRID)
    return Row(settings, THREE, like=f"{task}-20-{method}")


ROWS = {f"{task}-{name}": row(task, one) for task in TASKS for name, one in METHODS.items()}
ROWS |= {
    f"{task}-{name}": row(task, merged(METHODS["lacon"], one), f"{task}-lacon")
    for task in TASKS
    for name, one in ABLATIONS.items()
}
ROWS |= {f"{task}-projection": row(task, PROJECTION, f"{task}-ce") for task in TASKS}
ROWS |= {
    f"{task}-{shots}-{method}": few(task, shots, method)
    for task, several in SHOTS.items()
    for shots in several
    for method in ("ce", "lacon")
}
ROWS |= {
    f"{task}-majority": Row(merged(COMMON, MANY, {"tasks": {task: {}}}), THREE, constant=True)
    for task in TASKS
}
PAPER = Paper("lacon", ROWS, ("accuracy",))
