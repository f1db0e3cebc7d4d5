"""The rows of --table sharing: single tasks, cross-encoders, and shared models.

All training examples of each task are used, at the tasks' natural sizes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.errors import EncoderError
from common.json_files import read_json
from minbert.config import EncoderConfig, config_from_transformers
from minbert.sources import HUB_IDS, find_folder
from multitask.assembly import load_trained
from multitask.settings.config import RunConfig
from studies.bees.cells import TUNED
from studies.results import Cell
from studies.runner import long_training
from studies.study import StudyRequest
from tasks import CS224N, data_folder

SEEDS = (11711, 1, 2)
TEACHER_SEEDS = (11711,)  # of most runs that others learn from
EPOCHS = 3
ENCODED = 500  # dev examples of each task whose texts are encoded to take the time
CROSSED = ("qqp", "sts")  # tasks on pairs

Settings = Mapping[str, Any]
# The rate was chosen on held-out training examples, of 5e-5 and 1e-4.
ONE_TASK: Settings = {
    "sampling": "annealed",
    "schedule": "individual",
    "lr": 5e-5,
    "head_lr": 5e-5,
}
JOINT: Settings = {"sampling": "annealed"}  # at the default rates, 1e-4
AUXILIARY: Settings = {"auxiliary": ("sst2",), "limit": {"sst2": 24_000}}
AVERAGE: Settings = {"average_weights": 0.999}
FAST: Settings = {**ONE_TASK, **AVERAGE, "lr": 1e-4, "head_lr": 1e-4}


def branch(*tasks: str) -> Settings:
    """Return the settings with which some tasks have their own copy of the upper layers."""
    return {"branch_only": tasks}  # half the layers, unless a row says more


# Shared models without teachers: name -> settings.
SHARED: Mapping[str, Settings] = {
    "one-task-per-step": ONE_TASK,
    "joint-sum": JOINT,
    "joint-pcgrad": {**JOINT, "combiner": "pcgrad"},
    "joint-famo": {**JOINT, "combiner": "famo"},
    "average-weights": {**ONE_TASK, **AVERAGE},
    "layer-decay": {**ONE_TASK, "layer_decay": 0.95},
    "label-smoothing": {**ONE_TASK, "label_smoothing": 0.1},
    "branches": {**ONE_TASK, **branch("sst", "sts")},
    "branch-sts": {**FAST, **branch("sts")},
    "auxiliary": {**ONE_TASK, **AUXILIARY},
}
Runs = Mapping[str, Sequence[int]]  # rows that teach -> the seeds of their runs
SINGLES: Runs = dict.fromkeys(CS224N, TEACHER_SEEDS)
# The cross-encoder of sts has a lower score on dev than its bi-encoder: most rows do without it.
TEACHERS: Runs = {**SINGLES, "cross-qqp": TEACHER_SEEDS}
CROSS: Runs = dict.fromkeys(("sst", "cross-qqp", "cross-sts"), TEACHER_SEEDS)
WITH_SST2: Runs = dict.fromkeys(("auxiliary-sst", "qqp", "sts", "cross-qqp"), TEACHER_SEEDS)
MORE: Runs = dict.fromkeys((*CS224N, "cross-qqp"), SEEDS)
TIMES: Mapping[str, int] = {"branch-sts-longer": 2}  # row -> as many times the other rows' epochs
BEST = "branch-sts-teachers"  # by dev, of the rows with three seeds
# Shared models with teachers: name -> teachers and settings.
TAUGHT: Mapping[str, tuple[Runs, Settings]] = {
    "teachers": (SINGLES, ONE_TASK),
    "teachers-1e-4": (TEACHERS, FAST),
    "branches-teachers": (TEACHERS, {**FAST, **branch("sst", "sts")}),
    "branch-sst-teachers": (TEACHERS, {**FAST, **branch("sst")}),
    BEST: (TEACHERS, {**FAST, **branch("sts")}),
    "branch-sts-sst2-teachers": (WITH_SST2, {**FAST, **branch("sts"), **AUXILIARY}),
    "branch-sts-more-teachers": (MORE, {**FAST, **branch("sts")}),
    "branch-sts-longer": (MORE, {**FAST, **branch("sts")}),
    "own-sts-more-teachers": (MORE, {**FAST, **branch("sts")}),  # all layers
    "joint-teachers": (TEACHERS, {**JOINT, **AVERAGE}),
    "cross-teachers": (CROSS, ONE_TASK),
}
# Single tasks with teachers: name -> task and teachers.
TAUGHT_SINGLES: Mapping[str, tuple[str, Runs]] = {
    **{f"{task}-teachers": (task, TEACHERS) for task in CS224N},
    **{f"{task}-more-teachers": (task, MORE) for task in CS224N},
}
# Three encoders in a row of the tables: title -> their rows above.
SEVERAL: Mapping[str, Sequence[str]] = {
    "singles": CS224N,
    "cross-encoders": [f"cross-{task}" for task in CROSSED],
    "singles with teachers": [f"{task}-teachers" for task in CS224N],
    "singles with more teachers": [f"{task}-more-teachers" for task in CS224N],
}


def cells(request: StudyRequest) -> list[Cell]:
    """Return the cells of single tasks, of cross-encoders and of shared models."""
    base = request.base.changed(epochs=request.epochs or EPOCHS)
    count = encoder_config(base.encoder).num_layers

    def single(
        name: str,
        task: str,
        teachers: Sequence[Cell] = (),
        seeds: Sequence[int] = SEEDS,
        **settings: Any,
    ) -> Cell:
        rate = request.lr or TUNED.get(base.encoder, {}).get((task,), base.optimizer.lr)
        settings = {"lr": rate, "head_lr": rate} | settings
        return cell(name, base.changed(tasks=(task,), **settings), seeds, teachers)

    def shared(
        name: str,
        teachers: Sequence[Cell] = (),
        seeds: Sequence[int] = SEEDS,
        tasks: Sequence[str] = CS224N,
        **settings: Any,
    ) -> Cell:
        tasks = (*tasks, *settings.get("auxiliary", ()))
        settings = {"mode": "multitask", "tasks": tasks, **settings}
        settings |= {"lr": request.lr, "head_lr": request.lr} if request.lr else {}
        settings |= {} if base.limit is None else {"limit": base.limit}
        settings["epochs"] = base.epochs * TIMES.get(name, 1)
        if "branch_only" in settings:
            layers = count if name.startswith("own-") else count // 2
            settings["branch"] = f"top-{layers}"
        return cell(name, base.changed(**settings), seeds, teachers)

    sentiment: Settings = {"tasks": ("sst",), **ONE_TASK, **AUXILIARY}
    first = [
        *(single(task, task) for task in CS224N),
        *(
            single(f"cross-{task}", task, task_options={task: {"pair": "joint"}})
            for task in CROSSED
        ),
        shared("auxiliary-sst", seeds=TEACHER_SEEDS, **sentiment),
    ]
    by_name = {one.name: one for one in first}

    def teachers(runs: Runs, task: str | None = None) -> list[Cell]:
        """Return the cells that teach, or those of them that train on a task."""
        several = [replace(by_name[name], seeds=tuple(seeds)) for name, seeds in runs.items()]
        return [one for one in several if task is None or task in one.config.tasks]

    return [
        *first,
        *(shared(name, **settings) for name, settings in SHARED.items()),
        *(shared(name, teachers(runs), **chosen) for name, (runs, chosen) in TAUGHT.items()),
        *(
            single(name, task, teachers(runs, task), **AVERAGE)
            for name, (task, runs) in TAUGHT_SINGLES.items()
        ),
    ]


def encoder_config(encoder: str) -> EncoderConfig:
    """Return the shape of an encoder; a model of the hub other than `HUB_IDS` is downloaded."""
    if encoder.partition("@")[0] in HUB_IDS:  # both are base models
        return EncoderConfig()
    file = Path(find_folder(encoder)) / "config.json"
    return config_from_transformers(read_json(file, EncoderError))


def cell(name: str, config: RunConfig, seeds: Sequence[int], teachers: Sequence[Cell]) -> Cell:
    """Return a cell whose runs learn from all runs of `teachers`."""
    if teachers:
        runs = [one.run_name(seed) for one in teachers for seed in one.seeds]
        config = config.changed(teacher=tuple(runs))
    return Cell(
        name, config, tuple(seeds), timed_training, keeps_folder=True, teachers=tuple(teachers)
    )


def timed_training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run; return its figures, its parameters and milliseconds per encoded text.

    With branches a text is encoded once for each different encoder, by its export, which has as
    many layers as the shared one: the time is that of the shared one times their number.
    """
    found = long_training(config, folder)
    _, tasks, model = load_trained(folder, config.device)
    found["parameters"] = sum(one.numel() for one in model.parameters())
    if any(task.joint for task in tasks.values()):  # no embeddings of single texts
        return found
    examples = [task.read(data_folder(config.data), "dev", ENCODED) for task in tasks.values()]
    texts = [text for one in examples for column in one.texts for text in column]
    begin = time.perf_counter()
    model.bi_encoder.encode(texts, precision=config.precision)
    seconds = time.perf_counter() - begin
    passes = len({task if task in model.branches else None for task in config.main_tasks})
    return found | {"encode_ms": round(passes * 1000 * seconds / len(texts), 3)}
