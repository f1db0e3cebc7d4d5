"""The rows of one encoder for three tasks beside three encoders, also with dev as test."""

from __future__ import annotations

from papers.paper import Paper, Row, Settings, merged, rates

TASKS: Settings = {"sst": {}, "qqp": {}, "sts": {}}
SEEDS = (11711, 1, 2)
COMMON: Settings = {
    "encoder": "minilm",
    "precision": "bf16",
    "epochs": 3,
    "batch_size": 16,
    "optimizer": {"weight_decay": 0.01, "warmup": 0.1},
}
HELD_OUT: Settings = {"protocol": "held-out"}  # dev is a tenth of train, and test the files' dev
# Rates were chosen on held-out training examples.
SINGLE = {"sst": 1e-4, "qqp": 5e-5, "sts": 1e-4}
SHARED: Settings = {"tasks": TASKS, "sampling": "annealed", "schedule": "individual"}


def row(settings: Settings, lr: float, further: Settings) -> Row:
    return Row(merged(COMMON, settings, *rates(lr).values(), further), SEEDS)


ROWS = {
    f"{task}{ending}": row({"tasks": {task: {}}}, lr, further)
    for ending, further in (("", {}), ("-held-out", HELD_OUT))
    for task, lr in SINGLE.items()
}
ROWS |= {
    "one-task-per-step": row(SHARED, 5e-5, {}),
    "one-task-per-step-held-out": row(SHARED, 5e-5, HELD_OUT),
}
ROWS["majority"] = Row(merged(COMMON, {"tasks": TASKS}), SEEDS, constant=True)
PAPER = Paper("sharing", ROWS, ("accuracy", "pearson"))
