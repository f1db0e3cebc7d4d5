"""The rows of SCL-MOO: Table 2 (few-shot), Table 3, EPO's variants, and the fronts of Figure 5a.

Moukafih, Ghogho and Smaili (2022): "Supervised Contrastive Learning as Multi-Objective Optimization
for Fine-Tuning Large Pre-trained Language Models".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from papers.paper import Paper, Row, Settings, merged, rates

TASKS = ("sst2", "qnli", "trec", "sst", "mrpc", "cola")
JOINT = ("qnli", "mrpc")  # pairs, read as one sequence as in the paper
METHODS: Mapping[str, Settings] = {  # section 4.1: the settings that the paper found best
    "ce": {},
    "scl": {"objective": {"name": "scl", "temperature": 0.3, "weight": 0.3}},
    "ls": {"objective": {"name": "ls", "temperature": 0.3, "weight": 0.3, "preference": 0.1}},
    "epo": {"objective": {"name": "epo", "temperature": 0.3, "weight": 0.3, "preference": 0.1}},
}
TEN, THREE = tuple(range(1, 11)), (1, 2, 3)
SHORT = ("sst2", "trec", "sst")  # few-shot runs of less than a minute, on tasks that are learnt
SHOTS, TUNED_SHOTS = (20, 50, 100), 50
PREFERENCES = (0.1, 0.3, 0.5, 0.7, 0.9)  # for pull, in Figure 5a
COMMON: Settings = {
    "encoder": "minilm",
    "precision": "bf16",
    "pooling": "mean",
    "batch_size": 16,  # section 4.1
    "class_balanced": True,  # Algorithm 1; here for all methods
    "drop_leaks": "own",
    "optimizer": {"warmup": 0.1},
}
# Dev chooses settings, not epochs.
FEW: Settings = {"epochs": 15, "evaluate_every": 15, "keep": "last"}
MANY: Settings = {"protocol": "held-out", "limit": 2000, "dev_limit": 500, "epochs": 3}
RATES = rates(5e-5, 2e-4)
# The same points for all methods; cross-entropy has no weight.
POINTS = {
    f"{rate}_{weight}": merged(settings, {"objective": {"weight": weight}})
    for rate, settings in RATES.items()
    for weight in (0.3, 0.9)
}


def few_shot(task: str, shots: int, method: str, like: str = "", **more: Any) -> Row:
    """Return a row of Table 2, tuned with 50 examples unless it is tuned `like` another one."""
    drawn = {"tasks": tasks(task), "protocol": {"name": "few-shot", "shots": shots}}
    tuned = like or ("" if shots == TUNED_SHOTS else f"{task}-{TUNED_SHOTS}-{method}")
    grid = {"like": tuned} if tuned else {"grid": RATES if method == "ce" else POINTS}
    settings = merged(COMMON, FEW, drawn, METHODS[method], more)
    return Row(settings, TEN if task in SHORT else THREE, **grid)


def many(task: str, method: str) -> Row:
    """Return a row of Table 3, tuned like Table 2; pairs, which are long, have half as many."""
    fewer: Settings = {"limit": 1000} if task in JOINT else {}
    settings = merged(COMMON, MANY, fewer, {"tasks": tasks(task)}, METHODS[method])
    return Row(settings, THREE, like=f"{task}-{TUNED_SHOTS}-{method}")


def tasks(task: str) -> Settings:
    return {task: {"pair": "joint"} if task in JOINT else {}}


def extras(
    name: str, folder: Path, metrics: Mapping[str, Any]
) -> dict[tuple[str, str, str], float]:
    """Return how EPO solved its steps, and pull and push on dev of a point of Figure 5a."""
    found = {}
    (task,) = (one for one in metrics["dev"] if one in TASKS)
    steps = metrics.get("combiner_steps", {})
    if "epo" in name and steps:
        vertices = sum(count for status, count in steps.items() if status.endswith("at a vertex"))
        found[task, "train", "share of steps at a vertex"] = vertices / sum(steps.values())
    if name in FRONT.values():
        pull, push = pull_and_push(folder)
        found |= {(task, "dev", "pull"): pull, (task, "dev", "push"): push}
    return found


def pull_and_push(folder: Path) -> tuple[float, float]:
    """Return both objectives of a finished run on dev (the papers' Eq. 2 and 3)."""
    import torch

    from losses import contrastive_objectives
    from minbert import BiEncoder
    from multitask.config_tasks import plain_tasks
    from multitask.runs import Run
    from tasks import data_folder

    config = Run(folder).config
    (task,) = plain_tasks(config).values()
    examples = task.read(data_folder(config.data), "dev")
    encoder = BiEncoder.from_pretrained(str(Run(folder).weights()))
    embeddings = torch.from_numpy(encoder.encode(examples.texts[0]))
    temperature = METHODS["ls"]["objective"]["temperature"]
    targets = torch.as_tensor(examples.targets)
    pull, push = contrastive_objectives(embeddings, targets, temperature)
    return float(pull), float(push)


def front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names of the points that no other one dominates, by their first objective."""
    best = [
        name
        for name, (a, b) in points.items()
        if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in points.values())
    ]
    return sorted(best, key=lambda name: points[name])


# The points of the fronts: (method, preference for pull) -> row. 0.1 is that of Table 2.
FRONT = {
    (method, first): f"sst2-50-{method}" + ("" if first == 0.1 else f"-r{first:g}")
    for method in ("ls", "epo")
    for first in PREFERENCES
}
ROWS = {
    f"{task}-{shots}-{method}": few_shot(task, shots, method)
    for task in TASKS
    for shots in SHOTS
    for method in METHODS
}
ROWS |= {
    # The gradients of Algorithm 1 at the parameters, and the objectives of Eq. 4 and 5.
    "sst2-50-epo-parameters": few_shot(
        "sst2", 50, "epo", like="sst2-50-epo", gradients="parameters"
    ),
    "sst2-50-epo-combined": few_shot(
        "sst2", 50, "epo", like="sst2-50-epo", objective={"inputs": "combined"}
    ),
}
ROWS |= {
    name: few_shot(
        "sst2",
        50,
        method,
        like=f"sst2-50-{method}",
        objective={"preference": first},
    )
    for (method, first), name in FRONT.items()
    if name not in ROWS
}
ROWS |= {f"{task}-many-{method}": many(task, method) for task in TASKS for method in METHODS}
ROWS |= {
    f"{task}-majority": replace(ROWS[f"{task}-{TUNED_SHOTS}-ce"], grid={}, constant=True)
    for task in TASKS
}
PAPER = Paper("scl_moo", ROWS, ("accuracy",), extras=extras)
