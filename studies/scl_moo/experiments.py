"""SCL-MOO's experiments as configurations: few-shot, full data, and the ablation of Figure 5.

Moukafih, Ghogho and Smaili (2022): "Supervised Contrastive Learning as Multi-Objective Optimization
for Fine-Tuning Large Pre-trained Language Models"; figures are accuracies on test, in per cent, of
RoBERTa base, mean and standard deviation over ten seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from multitask.config import RunConfig
from studies.seeds import SeedCell
from tasks import PAIRS

METHODS = {"ce": "CE", "scl": "CE + SCL", "ls": "CE + LS", "epo": "CE + EPO"}
TASKS = ("sst2", "qnli", "mrpc", "rte", "cola", "mnli")
SHOTS = (20, 50, 100)
FULL = ("cola", "mrpc", "rte", "sst2", "qnli", "mnli")
SEEDS = tuple(range(1, 11))
FULL_SEEDS = SEEDS[:3]
SWEEP_SEEDS = SEEDS[:5]
SPACES = ("sst2", "mrpc")  # tasks with which EPO's two Gram matrices are compared
EPOCHS, FULL_EPOCHS = 15, 3  # the paper tells neither
GRID = (0.1, 0.3, 0.5, 0.7, 0.9)  # of tau and lambda (section 4.1); of r_1, in Figure 5a
# Section 4.1: batches of 16; what is swept is at its best there.
PAPER: dict[str, Any] = {
    "mode": "single",
    "pooling": "cls",
    "batch_size": 16,
    "scl_temperature": 0.3,
    "scl_weight": 0.3,
    "scl_preference": (0.1, 0.9),
}
FEW_SHOT_PAPER = {  # Table 2
    "sst2": {
        20: {"ce": (59.72, 5.9), "scl": (60.34, 5.3), "ls": (72.06, 5.4), "epo": (68.96, 3.5)},
        50: {"ce": (81.64, 1.6), "scl": (81.42, 4.8), "ls": (81.92, 1.6), "epo": (82.93, 0.9)},
        100: {"ce": (85.32, 1.4), "scl": (85.41, 1.3), "ls": (85.64, 1.4), "epo": (85.43, 1.2)},
    },
    "qnli": {
        20: {"ce": (50.57, 1.8), "scl": (50.80, 1.8), "ls": (51.89, 1.6), "epo": (51.44, 1.2)},
        50: {"ce": (61.20, 2.5), "scl": (66.02, 2.4), "ls": (62.06, 4.2), "epo": (62.93, 1.6)},
        100: {"ce": (72.74, 1.4), "scl": (73.37, 1.1), "ls": (73.39, 1.2), "epo": (74.29, 0.8)},
    },
    "mnli": {
        20: {"ce": (34.07, 1.5), "scl": (33.25, 1.5), "ls": (34.81, 1.1), "epo": (33.94, 0.9)},
        50: {"ce": (37.36, 2.1), "scl": (38.20, 1.1), "ls": (39.55, 1.8), "epo": (40.52, 1.5)},
        100: {"ce": (44.87, 1.5), "scl": (43.79, 1.9), "ls": (46.51, 1.7), "epo": (46.89, 1.6)},
    },
}
FULL_PAPER = {  # Table 3
    "sst2": {"ce": (93.12, 0.4), "scl": (93.51, 0.5), "ls": (94.01, 0.8), "epo": (94.18, 1.3)},
    "cola": {"ce": (82.73, 0.6), "scl": (83.02, 0.6), "ls": (83.49, 0.7), "epo": (83.65, 0.9)},
    "mrpc": {"ce": (88.23, 0.9), "scl": (87.59, 0.7), "ls": (87.10, 0.9), "epo": (87.05, 0.4)},
    "rte": {"ce": (75.74, 1.0), "scl": (77.68, 1.4), "ls": (75.88, 1.2), "epo": (76.93, 1.3)},
    "qnli": {"ce": (86.87, 1.1), "scl": (88.53, 0.9), "ls": (88.15, 1.4), "epo": (88.49, 1.8)},
    "mnli": {"ce": (84.29, 0.6), "scl": (84.91, 0.5), "ls": (85.09, 0.5), "epo": (85.19, 0.5)},
}
DATA_PAPER = {  # Table 1
    "cola": ("8.5k", "1k"),
    "sst2": ("67k", "1.8k"),
    "mrpc": ("3.7k", "1.7k"),
    "mnli": ("393k", "20k"),
    "qnli": ("105k", "5.4k"),
    "rte": ("2.5k", "3k"),
}
SWEEPS = {"scl_temperature": "tau", "scl_weight": "lambda", "scl_preference": "r1"}


def method_settings(method: str) -> dict[str, Any]:
    """What a method changes: a mini-batch a class for pull and push (Algorithm 1)."""
    if method == "ce":
        return {}
    if method == "scl":
        return {"objective": "scl"}
    found: dict[str, Any] = {"objective": method, "per_class": True}
    return found | ({"gradients": "representation"} if method == "epo" else {})


@dataclass(frozen=True)
class Experiments:
    """The cells of a base configuration, which has data, encoder, precision and learning rate.

    `epochs` takes the place of the study's numbers.
    """

    base: RunConfig
    epochs: int | None = None

    def few_shot(
        self, task: str, shots: int, method: str, seeds: tuple[int, ...] = SEEDS
    ) -> SeedCell:
        """One task, one number of labelled examples, one method; its last epoch counts."""
        epochs = self.epochs or EPOCHS
        config = replace(
            self.config(task, method),
            protocol="few-shot",
            shots=shots,
            limit=None,
            epochs=epochs,
            evaluate_every=epochs,  # dev chooses settings, not epochs
            keep="last",
        )
        return SeedCell(f"few-shot-{task}-{shots}-{method}", config, seeds)

    def full(self, task: str, method: str) -> SeedCell:
        """All of a task's examples, a tenth of them held out as dev, which chooses the epoch."""
        config = self.config(task, method)
        config = replace(config, protocol="held-out", epochs=self.epochs or FULL_EPOCHS)
        return SeedCell(f"full-{task}-{method}", config, FULL_SEEDS)

    def sweep(self, setting: str, value: float, method: str) -> SeedCell:
        """One setting of a method at another value: SST-2, 50 examples (section 6).

        At its own value it is the few-shot cell.
        """
        one = self.few_shot("sst2", 50, method, SWEEP_SEEDS)
        changed: Any = (value, 1 - value) if setting == "scl_preference" else value
        if changed == getattr(one.config, setting):
            return self.few_shot("sst2", 50, method)
        name = f"sweep-{SWEEPS[setting]}-{value:g}-{method}"
        return SeedCell(name, replace(one.config, **{setting: changed}), one.seeds)

    def at_parameters(self, task: str) -> SeedCell:
        """EPO whose Gram matrix is of the parameters' gradients, not of the representation's."""
        one = self.few_shot(task, 50, "epo", SWEEP_SEEDS)
        config = replace(one.config, gradients="parameters")
        return SeedCell(f"parameters-{task}-epo", config, one.seeds)

    def every(self) -> list[SeedCell]:
        """All there are, in the order of the tables and of Figure 5."""
        few = [self.few_shot(t, n, m) for t in TASKS for n in SHOTS for m in METHODS]
        full = [self.full(task, method) for task in FULL for method in METHODS]
        swept = [self.sweep(setting, v, m) for setting, m in swept_methods() for v in GRID]
        spaces = [self.at_parameters(task) for task in SPACES]
        return list({one.name: one for one in [*few, *full, *swept, *spaces]}.values())

    def config(self, task: str, method: str) -> RunConfig:
        options: dict[str, dict[str, str]] = {task: {"pair": "joint"}} if task in PAIRS else {}
        settings = PAPER | method_settings(method)
        return replace(
            self.base,
            tasks=(task,),
            task_options=options,
            drop_leaks=True,
            leaks_of="own",
            **settings,
        )


def swept_methods() -> list[tuple[str, str]]:
    """Settings and the methods that have them."""
    return [
        (setting, method)
        for setting in SWEEPS
        for method in ("scl", "ls", "epo")
        if not (setting == "scl_preference" and method == "scl")
    ]
