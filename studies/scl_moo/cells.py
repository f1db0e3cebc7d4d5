"""SCL-MOO's experiments as configurations: few-shot, full data, and the ablation of Figure 5.

Moukafih, Ghogho and Smaili (2022): "Supervised Contrastive Learning as Multi-Objective Optimization
for Fine-Tuning Large Pre-trained Language Models".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from studies.results import Cell
from studies.runner import training
from studies.tuning import Search, Tuned, changes_of, rates
from tasks import PAIRS

METHODS = {"ce": "CE", "scl": "CE + SCL", "ls": "CE + LS", "epo": "CE + EPO"}
BALANCED = "-balanced"
# The baselines with the batches of LS and EPO, so that a difference is not that of the batches.
CONTROLS = {f"{name}{BALANCED}": f"{METHODS[name]}, balanced" for name in ("ce", "scl")}
TASKS = ("sst2", "qnli", "mrpc", "rte", "cola", "mnli")
SHOTS = (20, 50, 100)
TUNED_SHOTS = 50
FULL = ("cola", "mrpc", "rte", "sst2", "qnli", "mnli")
SEEDS = tuple(range(1, 11))
FULL_SEEDS = SEEDS[:3]
SWEEP_SEEDS = SEEDS[:5]
VARIED = ("sst2", "mrpc")  # tasks that compare variants of EPO
VARIANTS: dict[str, dict[str, Any]] = {
    "parameters": {"gradients": "parameters"},  # not those of the representation
    "combined": {"scl_inputs": "combined"},  # losses with cross-entropy (Equations 4 and 5)
}
EPOCHS, FULL_EPOCHS = 15, 3  # the paper gives neither
GRID = (0.1, 0.3, 0.5, 0.7, 0.9)  # tau and lambda (section 4.1), r_1 (Figure 5a)
# Section 4.1: batches of 16. The swept settings of the objectives have their best values, the
# defaults.
PAPER: dict[str, Any] = {"mode": "single", "pooling": "cls", "batch_size": 16}
NOT_TUNED = "temperature, weight and preference are the paper's, not tuned for this encoder"
CONTROL_NOT_TUNED = "settings of the control were chosen with other batches"
SWEPT = "sst2", 50  # task and number of examples of Figure 5 (section 6)
SWEEPS = {"scl_temperature": "tau", "scl_weight": "lambda", "scl_preference": "r1"}


def method_settings(method: str) -> dict[str, Any]:
    """Return a method's settings; pull and push use class-balanced batches (Algorithm 1)."""
    objective = method.removesuffix(BALANCED)
    found: dict[str, Any] = {} if objective == "ce" else {"objective": objective}
    if method not in ("ce", "scl"):  # those of `CONTROLS` too
        found["class_balanced"] = True
    return found


@dataclass(frozen=True)
class Experiments:
    """The cells of a base configuration, which sets data, encoder, precision and learning rate.

    `epochs` and `changes` (pooling, batch size) replace the study's values. A few-shot cell has the
    first settings that were `tuned` for: the method with as many examples, the method with
    `TUNED_SHOTS`, the method of a control with as many, the method of a control with `TUNED_SHOTS`.
    """

    base: RunConfig
    epochs: int | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    tuned: Tuned = field(default_factory=dict)
    made: dict[tuple[str, ...], RunConfig] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def few_shot(self, task: str, shots: int, method: str, seeds: tuple[int, ...] = SEEDS) -> Cell:
        """Return a cell of a task, a number of examples and a method; the last epoch counts."""
        epochs = self.epochs or EPOCHS
        prefixes = f"few-shot-{task}-{shots}", f"few-shot-{task}-{TUNED_SHOTS}"
        name = few_shot_name(task, shots, method)
        config = self.changed(
            name,
            self.config(task, method, *prefixes),
            protocol="few-shot",
            shots=shots,
            limit=None,
            epochs=epochs,
            evaluate_every=epochs,  # dev chooses settings, not epochs
            keep="last",
        )
        return Cell(name, config, seeds, training)

    def full(self, task: str, method: str) -> Cell:
        """Return a cell with all examples; a tenth is held out as dev, which selects the epoch."""
        name, config = f"full-{task}-{method}", self.config(task, method, f"full-{task}")
        epochs = self.epochs or FULL_EPOCHS
        config = self.changed(name, config, protocol="held-out", epochs=epochs)
        return Cell(name, config, FULL_SEEDS, training)

    def sweep(self, setting: str, value: float, method: str) -> Cell:
        """Return a cell of `SWEPT` with another value of one setting.

        With the default value it is the few-shot cell.
        """
        one = self.few_shot(*SWEPT, method, SWEEP_SEEDS)
        if value == getattr(one.config.objective, setting.removeprefix("scl_")):
            return self.few_shot(*SWEPT, method)
        name = f"sweep-{SWEEPS[setting]}-{value:g}-{method}"
        config = self.changed(name, one.config, **{setting: value})
        return Cell(name, config, one.seeds, training)

    def variant(self, task: str, variant: str) -> Cell:
        """Return EPO's cell with other gradients in its Gram matrix, or other losses."""
        one = self.few_shot(task, 50, "epo", SWEEP_SEEDS)
        name = f"{variant}-{task}-epo"
        config = self.changed(name, one.config, **VARIANTS[variant])
        return Cell(name, config, one.seeds, training)

    def every(self) -> list[Cell]:
        """Return all cells, in the order of the tables and of Figure 5."""
        few = [self.few_shot(t, n, m) for t in TASKS for n in SHOTS for m in METHODS | CONTROLS]
        full = [self.full(task, method) for task in FULL for method in METHODS | CONTROLS]
        swept = [self.sweep(setting, v, m) for setting, m in swept_methods() for v in GRID]
        varied = [self.variant(task, name) for task in VARIED for name in VARIANTS]
        return list({one.name: one for one in [*few, *full, *swept, *varied]}.values())

    @cached_property
    def searches(self) -> list[Search]:
        """Return the grids by cell: rate, temperature, weight (4.1), preference (Figure 5a)."""
        every = METHODS | CONTROLS
        cells = [(self.few_shot(task, n, m), m) for task in TASKS for n in SHOTS for m in every]
        cells += [(self.full(task, m), m) for task in FULL for m in every]
        return [
            Search(one, {"lr": rates(one.config), **grid_of(method)}, dev_of(one))
            for one, method in cells
        ]

    def changed(self, name: str, config: RunConfig, **changes: Any) -> RunConfig:
        """Return the configuration of a cell, which has these changes, made once."""
        if (name,) not in self.made:
            self.made[(name,)] = changed_by_flags(config, **changes)
        return self.made[(name,)]

    def config(self, task: str, method: str, *prefixes: str) -> RunConfig:
        """Return the configuration of a method, made once.

        Its tuned settings are the first ones of a cell whose name is one of `prefixes` and the
        method, or the method of a control.
        """
        if (key := (task, method, *prefixes)) in self.made:
            return self.made[key]
        settings = PAPER | dict(self.changes) | method_settings(method)
        config = changed_by_flags(
            self.base,
            tasks={task: {"pair": "joint"} if task in PAIRS else {}},
            drop_leaks="own",
            **settings,
        )
        plain = method.removesuffix(BALANCED)
        names = [f"{prefix}-{m}" for m in (method, plain) for prefix in prefixes]
        tuned = next((self.tuned[name] for name in names if name in self.tuned), {})
        return self.made.setdefault(key, changed_by_flags(config, **changes_of(tuned)))


def few_shot_name(task: str, shots: int, method: str) -> str:
    """Return the name of a few-shot cell, which settings that are tuned for it have, too."""
    return f"few-shot-{task}-{shots}-{method}"


def grid_of(method: str) -> dict[str, Sequence[Any]]:
    """Return the values of a method's own settings; cross-entropy has none."""
    objective = method.removesuffix(BALANCED)
    if objective == "ce":
        return {}
    own: dict[str, Sequence[Any]] = {"scl_temperature": GRID, "scl_weight": GRID}
    if objective != "scl":
        own["scl_preference"] = GRID
    return own


def dev_of(one: Cell) -> tuple[str, ...]:
    """Return the keys of a run's dev figure by which settings are chosen."""
    (task,) = one.config.tasks
    return ("dev", task, "accuracy")


def swept_methods() -> list[tuple[str, str]]:
    """Return pairs of a swept setting and a method that has it."""
    return [
        (setting, method)
        for setting in SWEEPS
        for method in ("scl", f"scl{BALANCED}", "ls", "epo")
        if setting in grid_of(method)
    ]
