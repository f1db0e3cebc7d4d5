"""The rows of BEES: models M1 to M18, Tables 3 and 4, and the weights of Figures 2 and 3.

Dhayananda Ganesh: "BEES: Bi-Encoder Ensembles with Simple Contrastive Learning and Smoothness
Induced Adversarial Regularization", a CS224N project; the models are those of section 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from papers.paper import Paper, Row, Settings, merged, rates

SST: Settings = {"sst": {}}
QQP: Settings = {"qqp": {}}
STS: Settings = {"sts": {}}
ALL = SST | QQP | STS
SEEDS, FULL_SEEDS = (1, 2, 3), (11711, 1, 2)
GRID = rates(3e-5, 1e-4, 3e-4)
FULL: Settings = {
    "encoder": "minilm",
    "precision": "bf16",
    "pooling": "mean",
    "epochs": 3,
    "batch_size": 16,
    "optimizer": {"weight_decay": 0.01, "warmup": 0.1},  # section 5.3
}
# A quarter of each task keeps their proportions. Test labels are not public.
QUARTER = FULL | {"limit": 0.25, "test_limit": 1}
MODEL = QUARTER | {"pooling_dropout": 0.3}  # section 4.2: the embeddings are dropped out
BASELINE = QUARTER | {"pooling": "cls"}  # section 4.1: the embedding of [CLS]
TOGETHER: Settings = {"tasks": ALL, "batch_size": 8}  # section 5.3
FIRST: Settings = {"sampling": {"name": "hybrid", "first_epochs": 1}}  # of three, as 3 of 7
ANNEALED: Settings = {"sampling": "annealed", "schedule": "individual"}
SURGERY: Settings = {"combiner": "pcgrad"}
SIGMOID = {"sts": {"activation": "sigmoid"}}


def row(settings: Settings, base: Settings = MODEL, **more: Any) -> Row:
    """Return a row with a quarter of the data, which has its own grid unless it is tuned `like`."""
    grid = {} if "like" in more else {"grid": GRID}
    return Row(merged(base, settings), **{"seeds": SEEDS, **grid, **more})


def full(settings: Settings, lr: float, **more: Any) -> Row:
    """Return a row with all training examples, at a rate chosen on held-out ones."""
    return Row(merged(FULL, settings, *rates(lr).values()), FULL_SEEDS, **more)


def simcse(tasks: Mapping[str, Any], base: Settings = QUARTER, pooling: str = "mean") -> Row:
    """Return a row of pre-training, with the objective's own rate, batches and single epoch."""
    kept: Settings = {key: base[key] for key in ("encoder", "precision", "limit") if key in base}
    settings = {"mode": "pretrain", "tasks": tasks, "objective": "simcse", "pooling": pooling}
    return Row(merged(kept, settings), SEEDS if "limit" in base else FULL_SEEDS)


def smart(task: str, weight: float, variant: str = "normalised") -> Settings:
    """Return the settings of SMART; the noise of public implementations, or the paper's ball."""
    term = {"name": "smart", "weight": {task: weight}, "variant": variant}
    return {"tasks": {task: {}}, "regularizers": (term,)}


def extras(
    name: str, folder: Path, metrics: Mapping[str, Any]
) -> dict[tuple[str, str, str], float]:
    """Return the counts of Figures 4 and 5: of M14 a confusion matrix, of M17 two histograms."""
    if name not in ("M14", "M17"):
        return {}
    import numpy as np

    from multitask.runs import Run

    task = "sst" if name == "M14" else "sts"
    scores = Run(folder).scores(task, "dev")
    labels, values = np.asarray(scores.targets), scores.values
    if name == "M14":
        pairs = zip(labels.astype(int).tolist(), values.argmax(1).tolist(), strict=True)
        places = [f"label {label} predicted {found}" for label, found in pairs]
        return {(task, "dev", one): float(places.count(one)) for one in set(places)}
    found = {}
    for what, several in (("label", labels), ("prediction", values)):
        for low, count in enumerate(np.histogram(several, bins=np.linspace(0, 5, 11))[0]):
            found[task, "dev", f"{what} from {low / 2:g}"] = float(count)
    return found


ROWS = {
    "simcse-sst": simcse(SST),
    "simcse-qqp": simcse(QQP),
    "simcse-sts": simcse(STS),
    "simcse-all": simcse(ALL),
    "simcse-sst-cls": simcse(SST, pooling="cls"),
    "simcse-qqp-cls": simcse(QQP, pooling="cls"),
    "simcse-sts-cls": simcse(STS, pooling="cls"),
    # Table 1. M1 trains only its head, which begins at random: ten times the rates.
    "M1": row(
        {"tasks": {"sst": {"head": "softmax"}}, "freeze_encoder": True, "epochs": 10},
        BASELINE,
        grid=rates(3e-4, 1e-3, 3e-3),
    ),
    "M2": row({"tasks": {"qqp": {"head": "concat"}}}, BASELINE, like="M5"),
    "M3": row({"tasks": {"sts": {"head": "cosine"}}}, BASELINE),
    "M4": row({"tasks": SST}),
    "M5": row({"tasks": QQP}),
    "M6": row({"tasks": STS}),
    "M7": row(TOGETHER),
    "M7-surgery": row(TOGETHER | SURGERY),
    "M8": row(TOGETHER | FIRST, like="M7"),
    "M9": row(TOGETHER | FIRST, start="simcse-all", like="M7"),
    "M10": row(TOGETHER | ANNEALED, start="simcse-all"),
    "M11": row({"tasks": SST}, start="simcse-sst"),
    "M12": row({"tasks": QQP}, start="simcse-qqp", like="M5"),
    "M13": row({"tasks": STS}, start="simcse-sts"),
    "M14": row(smart("sst", 1.0), start="simcse-sst"),
    "M15": row(smart("qqp", 1.0), start="simcse-qqp", like="M5"),
    "M16": row(smart("sts", 1.0), start="simcse-sts", like="M17"),
    "M17": row(smart("sts", 3.0), start="simcse-sts"),
    "M18": row(smart("sst", 1.0), start="simcse-all", like="M14"),
    "majority": Row(merged(MODEL, {"tasks": ALL}), SEEDS, constant=True),
    "ensemble": Row(
        {},
        SEEDS,
        members={
            "sst": ("M11", "M14", "M18"),
            "qqp": ("M5", "M8", "M12", "M15"),
            "sts": ("M13", "M16", "M17"),
        },
    ),
    # SMART with the noise of its own paper.
    "M14-projected": row(smart("sst", 1.0, "projected"), start="simcse-sst", like="M14"),
    "M16-projected": row(smart("sts", 1.0, "projected"), start="simcse-sts", like="M17"),
    "M17-projected": row(smart("sts", 3.0, "projected"), start="simcse-sts", like="M17"),
    # Table 3: [CLS], in SimCSE, too. Table 4: a sigmoid at the end of the head.
    "T3-sst": row({"tasks": SST, "pooling": "cls"}, start="simcse-sst-cls", like="M11"),
    "T3-qqp": row({"tasks": QQP, "pooling": "cls"}, start="simcse-qqp-cls", like="M5"),
    "T3-sts": row({"tasks": STS, "pooling": "cls"}, start="simcse-sts-cls", like="M13"),
    "T4-simcse": row({"tasks": SIGMOID}, start="simcse-sts"),
    "T4-smart": row(smart("sts", 3.0) | {"tasks": SIGMOID}, start="simcse-sts", like="T4-simcse"),
    # Figures 2 and 3; weight 0 is M13 and M11, 1 is M16 and M14, 3 on STS is M17.
    "F-sts-0.3": row(smart("sts", 0.3), start="simcse-sts", like="M17"),
    "F-sts-10": row(smart("sts", 10.0), start="simcse-sts", like="M17"),
    "F-sst-0.3": row(smart("sst", 0.3), start="simcse-sst", like="M14"),
    "F-sst-3": row(smart("sst", 3.0), start="simcse-sst", like="M14"),
    "F-sst-10": row(smart("sst", 10.0), start="simcse-sst", like="M14"),
    # All training examples.
    "M4-full": full({"tasks": SST}, 1e-4),
    "M5-full": full({"tasks": QQP}, 5e-5),
    "M6-full": full({"tasks": STS}, 5e-5),
    "M7-full": full(TOGETHER, 1e-4),
    "M7-surgery-full": full(TOGETHER | SURGERY, 1e-4),
    "simcse-all-full": simcse(ALL, FULL),
    "M10-full": full(TOGETHER | ANNEALED, 5e-5, start="simcse-all-full"),
}
PAPER = Paper("bees", ROWS, ("accuracy", "pearson"), extras=extras)
