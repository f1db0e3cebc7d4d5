"""The rows of SuperConText's Table 4: five losses, and logistic regression on their embeddings.

Moukafih, Sbihi, Ghogho and Smaili (2023): "SuperConText: Supervised Contrastive Learning Framework
for Textual Representations".
"""

from __future__ import annotations

from collections.abc import Mapping

from papers.paper import Paper, Row, Settings, merged, rates

TASKS: Mapping[str, Settings] = {"trec": {}, "sst2": {}, "mrpc": {"pair": "joint"}}
COMMON: Settings = {
    "encoder": "minilm",
    "precision": "bf16",
    "pooling": "mean",
    "protocol": "held-out",
    "drop_leaks": "own",
    "limit": 2000,
    "dev_limit": 500,
    "epochs": 3,
    "evaluate_every": 3,
    "keep": "last",
    "batch_size": 64,
    "class_balanced": True,
    "optimizer": {"weight_decay": 0.0, "warmup": 0.1},  # section IV.B: Adam
}
# Eight points each, the same ones where two methods share a setting.
RATES = rates(1e-5, 2e-5, 5e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4)
TWO = rates(5e-5, 2e-4)
AMOUNTS = (0.05, 0.1, 0.3, 0.5)


def with_amounts(setting: str) -> dict[str, Settings]:
    """Return the points of two rates and four values of a setting of the loss."""
    return {
        f"{rate}_{amount:g}": merged(settings, {"objective": {setting: amount}})
        for rate, settings in TWO.items()
        for amount in AMOUNTS
    }


GRIDS = {
    "ce": RATES,
    "class-triplet": with_amounts("margin"),
    "npair": RATES,
    "supcon": with_amounts("contrast_temperature"),
    "superloss": with_amounts("contrast_temperature"),
}


def row(task: str, loss: str) -> Row:
    """Return a row: pre-training by a loss, or training by cross-entropy, then the regression."""
    own: Settings = {}
    if loss != "ce":  # section IV.C: the non-linear head
        objective = {"name": loss, "projection_head": "nonlinear"}
        own = {"mode": "pretrain", "objective": objective}
    fewer: Settings = {"limit": 1000} if TASKS[task] else {}  # pairs are long
    settings = merged(COMMON, fewer, {"tasks": {task: TASKS[task]}}, own)
    return Row(settings, (1, 2, 3), GRIDS[loss], probe=True)


ROWS = {f"{task}-{loss}": row(task, loss) for task in TASKS for loss in GRIDS}
ROWS |= {
    f"{task}-majority": Row(merged(COMMON, {"tasks": {task: {}}}), (1, 2, 3), constant=True)
    for task in TASKS
}
PAPER = Paper("supercontext", ROWS, ("accuracy",))
