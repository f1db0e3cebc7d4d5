"""What a study costs before it is run: runs, training examples, operations and hours.

The hours are estimates from the number of floating-point operations and the steps, not measured
times: `DEVICES` states what is assumed of each device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

import numpy as np

from common.errors import EncoderError, UserError, one_line
from common.json_files import read_json
from minbert.config import EncoderConfig, config_from_transformers
from minbert.sources import HUB_IDS, find_folder
from multitask.config_tasks import build_tasks
from multitask.sampling import batches_by_task, build_plan
from multitask.settings.config import RunConfig
from reports.tables import Table
from studies.results import Cell, Results
from tasks import data_folder
from tasks.base import Task
from tasks.data import read_split
from tasks.readers import Limit, limit_of

PIECES_PER_WORD = 1.3  # word pieces per word of English, without the two special tokens
SAMPLE = 500  # texts whose words are counted
BILSTM = re.compile(r"bilstm-(\d+)x(\d+)")
WORDS = 300  # width of a BiLSTM's word vectors
MATRIX = 6  # operations per weight and token: 2 forward, 4 backward


@dataclass(frozen=True)
class Device:
    """Assumed sustained operations per second of products, and fixed seconds per step."""

    name: str
    operations: Mapping[str, float]  # by precision
    step_seconds: float


# T4 (no bfloat16): with these numbers an epoch of BEES' M5 on all of Quora takes 50 of the 56
# minutes that the paper gives. A100: a third of 312 TFLOP/s in bf16 and half of 19.5 in fp32.
# Batches of 16 short texts keep a GPU waiting for the launch of its kernels, the time per step.
# Two CPU cores: what training of MiniLM sustains on two cores of an AMD EPYC (Zen 4) with bfloat16
# instructions.
DEVICES = (
    Device("T4", {"fp32": 3e12, "bf16": 3e12}, 0.08),
    Device("A100", {"fp32": 10e12, "bf16": 100e12}, 0.04),
    Device("two CPU cores", {"fp32": 0.11e12, "bf16": 0.18e12}, 0.0),
)


@dataclass(frozen=True)
class Cost:
    """Training examples, optimiser steps and operations of one or more runs."""

    runs: int = 0
    examples: int = 0
    steps: int = 0
    operations: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.runs + other.runs,
            self.examples + other.examples,
            self.steps + other.steps,
            self.operations + other.operations,
        )

    def times(self, runs: int) -> Cost:
        """Return the cost of a number of such runs."""
        return Cost(
            self.runs * runs, self.examples * runs, self.steps * runs, self.operations * runs
        )

    def hours(self, device: Device, precision: str) -> float:
        operations = device.operations[precision]
        return (self.operations / operations + self.steps * device.step_seconds) / 3600


Counts = list[tuple[int, float]]  # training examples of each task, and the tokens of an example


def cost_of(config: RunConfig, known: dict[str, Counts] | None = None) -> Cost:
    """Return the cost of training with a configuration; evaluation is not counted.

    `known` keeps what was counted in the data for other configurations that read the same.
    """
    known, key = {} if known is None else known, data_key(config)
    if key not in known:
        folder = data_folder(config.data)
        known[key] = [
            size_and_tokens(task, folder, limit_of(config.limit, task.name))
            for task in build_tasks(config).values()
        ]
    counts = known[key]
    sizes = [size for size, _ in counts]
    plan = build_plan(config, sizes)
    every = [step for epoch in range(config.epochs) for step in plan.steps(epoch + 1)]
    batches = batches_by_task(every, len(sizes))
    passes = 1.0 + sum(one.extra_passes() for one in config.regularizers)
    passes += config.combiner.extra_passes
    weights = encoder_weights(config.encoder)
    share = 1.0
    if config.freeze_encoder:  # without the gradients of weights; below heads without any
        share = 1 / 3 if config.adapter is None else 2 / 3
    examples, operations = 0, 0.0
    for batch_count, (size, tokens) in zip(batches, counts, strict=True):
        per_pass = ceil(size / config.batch_size)
        seen = round(batch_count / per_pass * size)
        examples += seen
        operations += seen * tokens * weights * MATRIX * passes * share
    return Cost(1, examples, len(every), operations)


def data_key(config: RunConfig) -> str:
    """Return a text that is the same for configurations which read the same training examples."""
    objective = config.task_objective
    trained_by = objective.name if objective is not None else config.pretraining_objective
    own = (config.data, config.limit, config.seed, config.drop_leaks, config.leaks_of)
    return repr((trained_by, config.tasks, config.task_options, config.protocol, *own))


def size_and_tokens(task: Task, folder: Path, limit: Limit) -> tuple[int, float]:
    """Return the number of training examples of a task, and the tokens of one example."""
    examples = read_split(task, folder, "train", limit)
    tokens = 0.0
    for texts in examples.texts:
        words = [len(text.split()) for text in texts[:SAMPLE]]
        tokens += 2 + PIECES_PER_WORD * float(np.mean(words or [0]))
    return len(examples), tokens


def encoder_config(encoder: str) -> EncoderConfig:
    """Return the shape of an encoder; a model of the hub other than `HUB_IDS` is downloaded."""
    if encoder.partition("@")[0] in HUB_IDS:  # both are base models
        return EncoderConfig()
    file = Path(find_folder(encoder)) / "config.json"
    return config_from_transformers(read_json(file, EncoderError))


@cache
def encoder_weights(encoder: str) -> int:
    """Return the number of weights in the matrices of an encoder's layers."""
    if shape := BILSTM.match(encoder):  # built by the study
        layers, units = int(shape[1]), int(shape[2])
        return sum(8 * units * ((3 * units) if layer else WORDS + units) for layer in range(layers))
    config = encoder_config(encoder)
    width, inner = config.hidden_size, config.intermediate_size
    return config.num_layers * (4 * width * width + 2 * width * inner)


def cost_table(cells: Sequence[Cell], results: Results, runs: Path, precision: str) -> Table:
    """Return the cost of the runs of each cell that are left, and of all cells.

    A cell from which others start is counted once, with a run for each of their seeds that are
    left. Runs that stop early cost less. A cell that cannot be run has the reason as its row.
    """
    rows, whole, known = [], Cost(), dict[str, Counts]()
    for one, seeds in left_runs(cells, results, runs):
        try:
            cost = cost_of(one.config, known).times(len(seeds))
        except UserError as error:
            rows.append([one.name, one_line(str(error)), *[""] * (2 + len(DEVICES))])
            continue
        whole += cost
        rows.append([one.name, *cells_of(cost, precision)])
    header = ["cell", "runs", "examples", "steps", *(f"hours on {d.name}" for d in DEVICES)]
    return header, [*rows, ["all", *cells_of(whole, precision)]]


def left_runs(cells: Sequence[Cell], results: Results, runs: Path) -> list[tuple[Cell, set[int]]]:
    """Return the cells with the seeds that are left; a base cell precedes those that need it.

    Earlier runs with a finished folder in `runs` are not repeated.
    """
    found: dict[str, tuple[Cell, set[int]]] = {}
    for one in cells:
        left = set(one.seeds) - results.figures_by_seed(one).keys()
        if not left:
            continue
        for seed in left:
            for before, number in one.every_earlier_run(seed):
                if results.finished_folder(before, number, runs) is None:
                    found.setdefault(before.name, (before, set()))[1].add(number)
        found[one.name] = one, left
    return list(found.values())


def cells_of(cost: Cost, precision: str) -> list[str]:
    hours = [f"{cost.hours(device, precision):.2g}" for device in DEVICES]
    return [str(cost.runs), f"{cost.examples:,}", f"{cost.steps:,}", *hours]
