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
from common.files import read_json
from minbert.config import EncoderConfig, config_from_transformers
from minbert.sources import HUB_IDS, find_folder
from multitask.assembly import load_trained
from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from studies.bees.cells import TUNED
from studies.results import Cell
from studies.runner import long_training
from studies.study import StudyRequest
from tasks import CS224N, data_folder

SEEDS = (11711, 1, 2)
TEACHER_SEEDS = (11711,)  # of the runs that others learn from
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

# Shared models without teachers: name -> settings.
SHARED: Mapping[str, Settings] = {
    "one-task-per-step": ONE_TASK,
    "joint-sum": JOINT,
    "joint-pcgrad": {**JOINT, "combiner": "pcgrad"},
    "joint-famo": {**JOINT, "combiner": "famo"},
    "layer-decay": {**ONE_TASK, "layer_decay": 0.95},
    "label-smoothing": {**ONE_TASK, "label_smoothing": 0.1},
    "branches": {**ONE_TASK, "branch": ("sst", "sts")},  # copies of half the layers
    "auxiliary": {**ONE_TASK, **AUXILIARY},
}
# Shared models with teachers, one task per step: name -> rows that teach.
TAUGHT: Mapping[str, Sequence[str]] = {
    "teachers": CS224N,
    "cross-teachers": ("sst", *(f"cross-{task}" for task in CROSSED)),
}
# Three encoders in a row of the tables: title -> their rows above.
SEVERAL: Mapping[str, Sequence[str]] = {
    "singles": CS224N,
    "cross-encoders": [f"cross-{task}" for task in CROSSED],
}


def cells(request: StudyRequest) -> list[Cell]:
    """Return the cells of single tasks, of cross-encoders and of shared models."""
    base = changed_by_flags(request.base, epochs=request.epochs or EPOCHS)

    def single(name: str, task: str, **settings: Any) -> Cell:
        rate = request.lr or TUNED.get(base.encoder, {}).get((task,), base.optimizer.lr)
        return cell(
            name,
            changed_by_flags(base, **{"tasks": (task,), "lr": rate, "head_lr": rate, **settings}),
        )

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
        if "branch" in settings:
            top = f"top-{encoder_config(base.encoder).num_layers // 2}"
            settings["branch"] = dict.fromkeys(settings["branch"], top)
        return cell(name, changed_by_flags(base, **settings), seeds, teachers)

    sentiment: Settings = {"tasks": ("sst",), **ONE_TASK, **AUXILIARY}
    first = [
        *(single(task, task) for task in CS224N),
        *(single(f"cross-{task}", task, tasks={task: {"pair": "joint"}}) for task in CROSSED),
        shared("auxiliary-sst", seeds=TEACHER_SEEDS, **sentiment),
    ]
    by_name = {one.name: one for one in first}

    def teachers(names: Sequence[str]) -> list[Cell]:
        """Return the cells that teach."""
        return [replace(by_name[name], seeds=TEACHER_SEEDS) for name in names]

    return [
        *first,
        *(shared(name, **settings) for name, settings in SHARED.items()),
        *(shared(name, teachers(names), **ONE_TASK) for name, names in TAUGHT.items()),
    ]


def encoder_config(encoder: str) -> EncoderConfig:
    """Return the shape of an encoder; a model of the hub other than `HUB_IDS` is downloaded."""
    if encoder.partition("@")[0] in HUB_IDS:  # both are base models
        return EncoderConfig()
    file = Path(find_folder(encoder)) / "config.json"
    return config_from_transformers(read_json(file, EncoderError))


def cell(
    name: str, config: RunConfig, seeds: Sequence[int] = SEEDS, teachers: Sequence[Cell] = ()
) -> Cell:
    """Return a cell whose runs learn from all runs of `teachers`."""
    if teachers:
        runs = [one.run_name(seed) for one in teachers for seed in one.seeds]
        config = changed_by_flags(config, teacher=tuple(runs))
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
