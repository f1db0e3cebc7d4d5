"""BEES' Table 1, one configuration a row, its ensemble, and Tables 3 and 4.

Dhayananda Ganesh: "BEES: Bi-Encoder Ensembles with Simple Contrastive Learning and Smoothness
Induced Adversarial Regularization"; the models are those of section 5.3, the figures dev scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from multitask.config import RunConfig
from pretrain.objectives import SimCSE
from studies.cells import Cell

SST, QQP, STS = ("sst",), ("qqp",), ("sts",)
ALL = ("sst", "qqp", "sts")
SEEDS = (11711, 1, 2, 3, 4)
# Section 5.3. Dropout of the heads, 0.3, is theirs everywhere here. What the paper does not tell,
# warm-up, decay and clipping, is as in any run.
PAPER = {"lr": 2e-5, "head_lr": 2e-5, "weight_decay": 0.01, "batch_size": 16}
SCALE = 5.0  # of the similarities whose squared error is the loss (Eq. 4)
MULTITASK = {"mode": "multitask", "batch_size": 8, "batches_per_step": len(ALL)}


@dataclass(frozen=True)
class Row:
    """A model: what it is trained on and how; `epochs`, `minutes` an epoch and scores in per cent.

    `overall` is printed for models of all tasks; `pretraining` names the tasks whose sentences
    SimCSE reads before (section 4.3).
    """

    title: str
    tasks: tuple[str, ...]
    epochs: int
    minutes: float
    paper: Mapping[str, float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    pretraining: tuple[str, ...] = ()
    overall: float | None = None


BASELINE = {"pooling": "cls"}
HYBRID = MULTITASK | {"sampling": "hybrid"}
SURGERY = {"combiner": "pcgrad"}
ROWS = {
    "M1": Row(
        "baseline, sentiment",
        SST,
        10,
        1.05,
        {"sst": 41.4},
        BASELINE | {"freeze_encoder": True, "task_options": {"sst": {"head": "softmax"}}},
    ),
    "M2": Row(
        "baseline, paraphrase",
        QQP,
        10,
        50.85,
        {"qqp": 66.3},
        BASELINE | {"task_options": {"qqp": {"head": "concat"}}},
    ),
    "M3": Row(
        "baseline, similarity",
        STS,
        10,
        2.94,
        {"sts": 63.5},
        BASELINE | {"task_options": {"sts": {"head": "cosine"}}},
    ),
    "M4": Row("mean pooling, sentiment", SST, 10, 1.23, {"sst": 51.3}),
    "M5": Row("bi-encoder, paraphrase", QQP, 5, 56, {"qqp": 88.5}),
    "M6": Row("bi-encoder, similarity", STS, 10, 3.2, {"sts": 75.4}),
    "M7": Row(
        "multi-task, round-robin, joint",
        ALL,
        10,
        35.1,
        {"sst": 50.7, "qqp": 81.6, "sts": 71.7},
        MULTITASK,
        overall=72.7,
    ),
    "M8": Row(
        "multi-task, hybrid, largest task first",
        ALL,
        7,
        71.6,
        {"sst": 47.2, "qqp": 88.1, "sts": 76.1},
        HYBRID | {"first_epochs": 3},
        overall=74.5,
    ),
    "M9": Row(
        "multi-task, SimCSE, hybrid",
        ALL,
        10,
        70.6,
        {"sst": 46.4, "qqp": 88.1, "sts": 77.2},
        HYBRID | {"first_epochs": 4},
        ALL,
        overall=74.4,
    ),
    "M10": Row(
        "multi-task, SimCSE, annealed, a task a step",
        ALL,
        3,
        56.3,
        {"sst": 49.0, "qqp": 84.8, "sts": 71.0},
        MULTITASK | {"sampling": "annealed", "schedule": "individual", "batches_per_step": 1},
        ALL,
        overall=73.1,
    ),
    "M11": Row("SimCSE, sentiment", SST, 10, 2.2, {"sst": 51.7}, {}, SST),
    "M12": Row("SimCSE, paraphrase", QQP, 6, 60.6, {"qqp": 88.8}, {}, QQP),
    "M13": Row("SimCSE, similarity", STS, 25, 5.02, {"sts": 81.0}, {}, STS),
    "M14": Row(
        "SimCSE, SMART, sentiment", SST, 5, 2.07, {"sst": 53.3}, {"smart_weight": {"sst": 1.0}}, SST
    ),
    "M15": Row(
        "SimCSE, SMART, paraphrase",
        QQP,
        6,
        58.1,
        {"qqp": 88.9},
        {"smart_weight": {"qqp": 1.0}},
        QQP,
    ),
    "M16": Row(
        "SimCSE, SMART of weight 1, similarity",
        STS,
        10,
        4.1,
        {"sts": 81.5},
        {"smart_weight": {"sts": 1.0}},
        STS,
    ),
    "M17": Row(
        "SimCSE, SMART of weight 3, similarity",
        STS,
        10,
        4.1,
        {"sts": 82.3},
        {"smart_weight": {"sts": 3.0}},
        STS,
    ),
    "M18": Row(
        "SimCSE on all tasks' text, SMART, sentiment",
        SST,
        5,
        2.07,
        {"sst": 53.6},
        {"smart_weight": {"sst": 1.0}},
        ALL,
    ),
}
# Single-task models whose overall score the table gives together; that of the first does not follow
# from its parts (63.15, printed 62.7).
TOGETHER = {
    ("M1", "M2", "M3"): 62.7,
    ("M4", "M5", "M6"): 75.8,
    ("M11", "M12", "M13"): 77.0,
    ("M14", "M15", "M17"): 77.8,
}
ENSEMBLE = {
    "sst": ("M11", "M14", "M18"),
    "qqp": ("M5", "M8", "M12", "M15"),
    "sts": ("M13", "M16", "M17"),
}
ENSEMBLE_PAPER = {"sst": 54.2, "qqp": 90.2, "sts": 84.8}
ENSEMBLE_OVERALL = 79.0
TEST_PAPER = {"sst": 55.0, "qqp": 90.1, "sts": 81.5}  # Table 2
# The abstract's claim about gradient surgery: the same models with it.
FURTHER = {
    f"{name}-surgery": replace(
        ROWS[name],
        title=f"{ROWS[name].title}, gradient surgery",
        paper={},
        overall=None,
        settings={**ROWS[name].settings, **SURGERY},
    )
    for name in ("M7", "M8", "M9")
}
# Table 3: [CLS] pooling; Table 4: a sigmoid at the end of the similarity head.
SIGMOID = {"task_options": {"sts": {"activation": "sigmoid"}}}
FURTHER |= {
    "T3-sst": replace(ROWS["M11"], paper={"sst": 51.9}, settings={"pooling": "cls"}),
    "T3-qqp": replace(ROWS["M12"], paper={"qqp": 77.2}, settings={"pooling": "cls"}),
    "T3-sts": replace(ROWS["M13"], paper={"sts": 70.9}, settings={"pooling": "cls"}),
    "T4-simcse": replace(ROWS["M13"], paper={"sts": 59.2}, settings=SIGMOID),
    "T4-smart": replace(
        ROWS["M17"], paper={"sts": 72.4}, settings={**ROWS["M17"].settings, **SIGMOID}
    ),
}
# Figures 2 and 3: further weights of SMART; 0 is M13 and M11, 1 is M16 and M14, 3 on STS is M17.
WEIGHTS = {"sts": ("M16", (0.3, 10.0)), "sst": ("M14", (0.3, 3.0, 10.0))}
FURTHER |= {
    f"F-{task}-{weight:g}": replace(ROWS[name], paper={}, settings={"smart_weight": {task: weight}})
    for task, (name, weights) in WEIGHTS.items()
    for weight in weights
}
CURVES = {
    "sts": {0.0: "M13", 0.3: "F-sts-0.3", 1.0: "M16", 3.0: "M17", 10.0: "F-sts-10"},
    "sst": {0.0: "M11", 0.3: "F-sst-0.3", 1.0: "M14", 3.0: "F-sst-3", 10.0: "F-sst-10"},
}
EVERY = ROWS | FURTHER


def row_cell(
    name: str,
    seed: int,
    base: RunConfig,
    runs: Path,
    epochs: int | None = None,
    lr: float | None = None,
) -> Cell:
    """The run of a row with a seed; `base` has data, limit, encoder, precision.

    `epochs` and `lr` replace the paper's numbers; hybrid sampling keeps its share of first epochs,
    with at least one of them and one for the rest.
    """
    row = EVERY[name]
    settings = {"mode": "single", **PAPER, **row.settings}
    settings |= {"lr": lr, "head_lr": lr} if lr else {}
    settings |= {"similarity_scale": SCALE} if "sts" in row.tasks else {}
    total = epochs or row.epochs
    if "first_epochs" in settings:
        share, total = settings["first_epochs"] / row.epochs, max(2, total)
        settings["first_epochs"] = min(total - 1, max(1, round(share * total)))
    config = base.changed(tasks=row.tasks, seed=seed, epochs=total, **settings)
    if not row.pretraining:
        return Cell(f"{name}-seed{seed}", config)
    before = pretraining_cell(row, seed, base)
    return Cell(f"{name}-seed{seed}", config.changed(init=str(runs / before.name)), before)


def pretraining_cell(row: Row, seed: int, base: RunConfig) -> Cell:
    """SimCSE on the training sentences of the row's tasks, shared by all rows that want it."""
    pooling = row.settings.get("pooling")
    name = "-".join(["simcse", *row.pretraining, *([pooling] if pooling else []), f"seed{seed}"])
    config = base.changed(
        mode="pretrain",
        tasks=row.pretraining,
        seed=seed,
        objective="simcse",
        pooling=pooling,
        **SimCSE.defaults,
    )
    return Cell(name, config)
