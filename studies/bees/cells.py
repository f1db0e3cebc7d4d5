"""The models of BEES as cells: Tables 1, 3 and 4, and SMART's weights in Figures 2 and 3.

Dhayananda Ganesh: "BEES: Bi-Encoder Ensembles with Simple Contrastive Learning and Smoothness
Induced Adversarial Regularization"; models are from section 5.3, figures are dev scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from pretrain.objectives import SimCSE
from studies.bees.analysis import analysed_training
from studies.results import Cell
from studies.runner import long_training
from studies.study import StudyRequest
from tasks import CS224N

SST, QQP, STS = ("sst",), ("qqp",), ("sts",)
ALL = CS224N
SEEDS = (11711, 1, 2, 3, 4)
# Section 5.3. The heads' dropout of 0.3 is the toolkit's default. The paper names one rate, and no
# warm-up, decay or clipping: `--preset bees` has a constant rate, these rows have our defaults.
PAPER = {"lr": 2e-5, "head_lr": 2e-5, "weight_decay": 0.01, "batch_size": 16}
SCALE = 5.0  # scale of the similarities in the squared error (Figure 1)
# Rates by encoder and tasks that are best, or within 0.2 points of the best, on a held-out tenth of
# the training examples, of five from 2e-5 to 4e-4 (QQP: four from 2e-5 to 2e-4); for all tasks of
# three from 5e-5 to 2e-4, with half of the examples.
TUNED: dict[str, dict[tuple[str, ...], float]] = {
    "minilm": {SST: 1e-4, QQP: 5e-5, STS: 1e-4, ALL: 1e-4}
}
# Rates by encoder and row that are the best ones with the row's own methods, chosen alike: for
# SimCSE and SMART of three from 2e-5 to 1e-4 (sentiment: from 5e-5 to 2e-4), for a sigmoid of seven
# from 1e-6 to 2e-4, for gradient surgery of three from 5e-5 to 2e-4, for the batches of M4-equal
# of five from 1e-5 to 2e-4. M6, with which SimCSE is compared, was chosen with SimCSE's three rates
# and held-out examples.
OWN_RATES: dict[str, dict[str, float]] = {
    "minilm": {
        **dict.fromkeys(("M6", "M13-mean", "M16-projected", "M17-projected"), 5e-5),
        "M4-equal": 2e-5,
        "M11-mean": 1e-4,
        "M12-mean": 5e-5,
        "M6-sigmoid": 2e-6,
        "M7-surgery": 1e-4,
    }
}
MULTITASK: dict[str, Any] = {"mode": "multitask", "batch_size": 8}
BASELINE = {"pooling": "cls"}
HYBRID = MULTITASK | {"sampling": "hybrid"}
SURGERY = {"combiner": "pcgrad"}


@dataclass(frozen=True)
class Row:
    """One model: its training tasks, its epochs and its settings.

    Its name begins with the table that shows it: M for Table 1, T3 and T4 for Tables 3 and 4, and
    F for Figures 2 and 3.
    `pretraining` names the tasks whose sentences SimCSE pre-training reads (section 4.3), with
    embeddings pooled by `pretraining_pooling`. A row `until_flat` trains with its own rate
    until dev does not improve, whatever is requested. Other rows train for the requested epochs, or
    their own, times `epochs_factor`; at the requested rate, or that of `OWN_RATES`, or that of
    `TUNED`, or the paper's.
    """

    title: str
    tasks: tuple[str, ...]
    epochs: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    pretraining: tuple[str, ...] = ()
    pretraining_pooling: str = "cls"
    until_flat: bool = False
    epochs_factor: int = 1


def baseline(task: str, head: str) -> dict[str, Any]:
    return BASELINE | {"tasks": {task: {"head": head}}}


def smart(task: str, weight: float) -> dict[str, Any]:
    return {"smart_weight": {task: weight}}


# The paper's ten epochs at 2e-5 leave the head of a frozen encoder far from trained.
FROZEN = baseline("sst", "softmax") | {"freeze_encoder": True, "head_lr": 1e-3, "patience": 5}
ANNEALED = {"sampling": "annealed", "schedule": "individual"}
ROWS = {
    "M1": Row("baseline, sentiment", SST, 60, FROZEN, until_flat=True),
    "M2": Row("baseline, paraphrase", QQP, 10, baseline("qqp", "concat")),
    "M3": Row("baseline, similarity", STS, 10, baseline("sts", "cosine")),
    "M4": Row("mean pooling, sentiment", SST, 10),
    "M5": Row("bi-encoder, paraphrase", QQP, 5),
    "M6": Row("bi-encoder, similarity", STS, 10),
    "M7": Row("multi-task, round-robin, joint", ALL, 10, MULTITASK),
    "M8": Row("multi-task, hybrid, largest task first", ALL, 7, HYBRID | {"first_epochs": 3}),
    "M9": Row("multi-task, SimCSE, hybrid", ALL, 10, HYBRID | {"first_epochs": 4}, ALL),
    "M10": Row(
        "multi-task, SimCSE, annealed, one task per step", ALL, 3, MULTITASK | ANNEALED, ALL
    ),
    "M11": Row("SimCSE, sentiment", SST, 10, {}, SST),
    "M12": Row("SimCSE, paraphrase", QQP, 6, {}, QQP),
    "M13": Row("SimCSE, similarity", STS, 25, {}, STS),
    "M14": Row("SimCSE, SMART, sentiment", SST, 5, smart("sst", 1.0), SST),
    "M15": Row("SimCSE, SMART, paraphrase", QQP, 6, smart("qqp", 1.0), QQP),
    "M16": Row("SimCSE, SMART of weight 1, similarity", STS, 10, smart("sts", 1.0), STS),
    "M17": Row("SimCSE, SMART of weight 3, similarity", STS, 10, smart("sts", 3.0), STS),
    "M18": Row("SimCSE on all tasks' text, SMART, sentiment", SST, 5, smart("sst", 1.0), ALL),
}
ENSEMBLE = {
    "sst": ("M11", "M14", "M18"),
    "qqp": ("M5", "M8", "M12", "M15"),
    "sts": ("M13", "M16", "M17"),
}
# The same models with gradient surgery, for the abstract's claim about it.
FURTHER = {
    f"{name}-surgery": replace(
        ROWS[name],
        title=f"{ROWS[name].title}, gradient surgery",
        settings={**ROWS[name].settings, **SURGERY},
    )
    for name in ("M7", "M8", "M9")
}
# The scale of the similarities decides their weight where losses share a step.
FURTHER |= {
    f"{name}-scale1": replace(
        ROWS[name],
        title=f"{ROWS[name].title}, similarities from 0 to 1",
        settings={**ROWS[name].settings, "similarity_scale": 1.0},
    )
    for name in ("M7", "M8", "M10")
}
# Table 3: [CLS] pooling; Table 4: a sigmoid at the end of the similarity head.
SIGMOID = {"tasks": {"sts": {"activation": "sigmoid"}}}
FURTHER |= {
    **{
        f"T3-{ROWS[m].tasks[0]}": replace(ROWS[m], settings=BASELINE) for m in ("M11", "M12", "M13")
    },
    "T4-simcse": replace(ROWS["M13"], settings=SIGMOID),
    "T4-smart": replace(ROWS["M17"], settings={**ROWS["M17"].settings, **SIGMOID}),
}
# SimCSE for an encoder whose [CLS] has no meaning of its own, and SMART's noise after the paper.
FURTHER |= {
    f"{name}-mean": replace(
        ROWS[name],
        title=f"SimCSE at the mean of the tokens, {title}",
        pretraining_pooling="mean",
    )
    for name, title in (("M11", "sentiment"), ("M12", "paraphrase"), ("M13", "similarity"))
}
FURTHER |= {
    f"{name}-projected": replace(
        ROWS[name],
        title=f"SimCSE at the mean of the tokens, SMART with projected noise, {title}",
        settings={**ROWS[name].settings, "smart_variant": "projected"},
        pretraining_pooling="mean",
    )
    for name, title in (
        ("M14", "sentiment"),
        ("M15", "paraphrase"),
        ("M16", "weight 1, similarity"),
        ("M17", "weight 3, similarity"),
    )
}
# Table 4 and single tasks beside M7 on equal terms: a sigmoid with a rate of its own; M7's
# examples, steps and number of dev scores (M4 has 6 % fewer examples and steps).
FURTHER |= {
    "M6-sigmoid": replace(
        ROWS["M6"], title="bi-encoder, similarity with a sigmoid", settings=SIGMOID
    ),
    **{
        f"{name}-equal": replace(
            ROWS[name],
            title=f"{ROWS[name].title}, {about}examples and steps of M7",
            settings={"batch_size": len(ALL) * MULTITASK["batch_size"], "evaluate_every": factor},
            epochs_factor=factor,
        )
        for name, factor, about in (("M4", 2, "about the "), ("M6", len(ALL), ""))
    },
}
# Figures 2 and 3: further weights of SMART; 0 is M13 and M11, 1 is M16 and M14, 3 on STS is M17.
WEIGHTS = {"sts": ("M16", (0.3, 10.0)), "sst": ("M14", (0.3, 3.0, 10.0))}
FURTHER |= {
    f"F-{task}-{weight:g}": replace(ROWS[name], settings=smart(task, weight))
    for task, (name, weights) in WEIGHTS.items()
    for weight in weights
}
CURVES = {
    "sts": {0.0: "M13", 0.3: "F-sts-0.3", 1.0: "M16", 3.0: "M17", 10.0: "F-sts-10"},
    "sst": {0.0: "M11", 0.3: "F-sst-0.3", 1.0: "M14", 3.0: "F-sst-3", 10.0: "F-sst-10"},
}
EVERY = ROWS | FURTHER


def cells(request: StudyRequest) -> list[Cell]:
    """Return the cell of every row."""
    own = request.epochs, request.lr, request.changes
    return [row_cell(name, request.base, *own) for name in EVERY]


def is_wanted(cell: Cell, request: StudyRequest) -> bool:
    """Return whether a row is requested: by default M1 to M18, with `further` all rows."""
    if request.rows:
        return cell.name in request.rows
    return request.further or cell.name in ROWS


def row_cell(
    name: str,
    base: RunConfig,
    epochs: int | None = None,
    lr: float | None = None,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> Cell:
    """Return the cell of a row; `base` sets data, limit, encoder and precision.

    `epochs`, `lr` and `changes` (batch size) replace the paper's values. Without `lr` the rate is
    the tuned one, if there is one. Hybrid sampling keeps its share of first epochs, with at least
    one first epoch and at least one other.
    """
    row = EVERY[name]
    settings: dict[str, Any] = {}
    lr = lr or tuned_rate(name, base.encoder)
    settings |= {"lr": lr, "head_lr": lr} if lr and not row.until_flat else {}
    settings |= {"similarity_scale": SCALE} if "sts" in row.tasks else {}
    settings |= {"pooling": "mean"} if row.pretraining else {}  # also after pre-training on [CLS]
    settings |= {**row.settings, **changes}
    total = row.epochs_factor * (epochs if epochs and not row.until_flat else row.epochs)
    if "first_epochs" in settings:
        share, total = settings["first_epochs"] / row.epochs, max(2, total)
        settings["first_epochs"] = min(total - 1, max(1, round(share * total)))
    every_row = changed_by_flags(
        base, mode="single", **PAPER
    )  # a frozen encoder has no use for its rate
    config = changed_by_flags(every_row, **{"tasks": row.tasks, "epochs": total, **settings})
    before = pretraining_cell(row, base) if row.pretraining else None
    return Cell(name, config, SEEDS, analysed_training, before, keeps_folder=True)


def tuned_rate(name: str, encoder: str) -> float | None:
    """Return the rate chosen for a row and an encoder on held-out training examples, or None."""
    own = OWN_RATES.get(encoder, {}).get(name)
    return own or TUNED.get(encoder, {}).get(EVERY[name].tasks)


def pretraining_cell(row: Row, base: RunConfig) -> Cell:
    """Return the SimCSE cell of a row (section 4.3); equal ones are shared."""
    config = changed_by_flags(
        base,
        mode="pretrain",
        tasks=row.pretraining,
        objective="simcse",
        pooling=row.pretraining_pooling,
        **SimCSE.defaults,
    )
    name = "-".join(["simcse", *row.pretraining, row.pretraining_pooling])
    return Cell(name, config, SEEDS, long_training, keeps_folder=True)
