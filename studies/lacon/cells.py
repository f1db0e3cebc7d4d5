"""LaCon's experiments as configurations: seven methods, few-shot, imbalance, ablation, sweeps.

Zhang, Zhao, Chen and He (2022): "Label Anchored Contrastive Learning for Language Understanding".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from multitask.config_tasks import plain_tasks
from multitask.runs import Run
from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from studies.results import Cell
from studies.runner import training
from studies.tuning import Search, Tuned, changes_of, rates
from tasks import DATA_SETS, PAIRS, data_folder
from tasks.lacon import HEADS
from tasks.readers import limit_of

METHODS = {
    "ce": "CE",
    "leam": "LEAM",
    "lsan": "LSAN",
    "cl": "CE + CL",
    "scl": "CE + SCL",
    "lacon": "LaCon-vanilla",
    "lacon-fusion": "LaCon-fusion",
}
RIVALS = ("ce", "leam", "lsan", "cl", "scl")
# Not in the paper: these two use all tokens, as fusion, LEAM and LSAN do.
AT_MEAN = {"ce-mean": "CE at the mean", "lacon-mean": "LaCon-vanilla at the mean"}
# The paper's public tasks; TREC is ours.
TASKS = (
    *("sst2", "cola", "mrpc", "rte", "qnli", "trec", "qqp", "mnli", "yelp2", "dbpedia"),
    *("tnews", "afqmc", "ocnli", "iflytek"),
)
METRICS = {"cola": "matthews", "tnews": "macro_f1"}  # accuracy for the others (Table 1)
SEEDS, FEW_SEEDS = tuple(range(1, 7)), tuple(range(1, 11))
SWEEP_SEEDS = SEEDS[:3]
MOST, MOST_OF_MANY = 5000, 1000  # examples per class, of two or more (section 3.1)
ALL = 1_000_000  # no cap for MRPC, RTE and CoLA
EPOCHS, FEW_EPOCHS = 10, 20
NOT_TUNED = "rate, temperature and weight are not tuned for each method"
FEW_TASKS = ("sst2", "mrpc", "rte", "qnli", "qqp", "yelp2", "tnews", "eprstmt", "bustm")
SHOTS = (10, 20, 50, 100)
FEW = 20  # examples per class of Table 4
CURVE = "sst2"  # the task with every number of shots
FEW_METHODS = {"ce": "CE", "lacon": "LaCon", "names": "LaCon, labels begin at their names"}
ABLATED = ("mrpc", "rte", "cola")
ICL = {"label_heads": 1, "label_terms": ("icl",)}
ABLATIONS: dict[str, tuple[str, dict[str, Any]]] = {  # Tables 3 and 6
    "single-head": ("LaCon with one head", {"label_heads": 1}),
    "no-icl": ("- ICL", {"label_terms": ("lcl", "ler")}),
    "no-lcl": ("- LCL", {"label_terms": ("icl", "ler")}),
    "no-ler": ("- LER", {"label_terms": ("icl", "lcl")}),
    "no-projection": ("- projection head", {"projection_layers": 0}),
    "icl-single": ("ICL of one head only", ICL),
    "icl": ("ICL only", {"label_terms": ("icl",)}),
    "lcl": ("LCL only", {"label_terms": ("lcl",)}),
}
IMBALANCED = ("qnli", "cola", "sst2", "trec")  # the last two are not in the paper
RATIOS = (1, 3, 5, 10, 20)
RAREST = 32
CLASS_TASKS = {"trec": tuple(range(2, 7)), "dbpedia": tuple(range(2, 15))}
CLASS_METHODS = ("ce", "scl", "lacon-fusion")
MAPPED = ("mrpc", "cola")  # Figure 4
CONTRAST = {"scl_temperature": (0.1, 0.3, 0.5, 0.7), "scl_weight": (0.1, 0.3, 0.5, 0.7, 0.9)}
LABELS = {"label_temperature": (0.05, 0.1, 0.2, 0.3, 0.5), "label_spread": (0.1, 0.5, 1.0)}
GRIDS = {"cl": CONTRAST, "scl": CONTRAST, "lacon": LABELS, "lacon-fusion": LABELS}
SWEPT = ("rte", "sst2")
SWEEPS: dict[str, tuple[str, tuple[float, ...]]] = {  # Figure 5
    "tau": ("label_temperature", (0.05, 0.1, 0.2, 0.3, 0.5)),
    "heads": ("label_heads", (1, 2, 4, 6, 12, 48)),
    "lambda": ("label_spread", (0.0, 0.1, 0.5, 1.0)),
}


@dataclass(frozen=True)
class Experiments:
    """The cells of a base configuration, which sets data, encoder and precision.

    The `limit` of `base` counts examples per class. `epochs`, `lr` and `changes` (pooling, batch
    size) replace the study's values, except the epochs of few-shot and imbalanced cells, which have
    few examples. Settings `tuned` for LaCon-vanilla or cross-entropy hold for their parts, numbers
    of classes and means of all tokens, those with 20 examples for other numbers that are not tuned.
    """

    base: RunConfig
    epochs: int | None = None
    lr: float = 2e-5
    changes: Mapping[str, Any] = field(default_factory=dict)
    tuned: Tuned = field(default_factory=dict)
    made: dict[str, Cell] = field(default_factory=dict, init=False, repr=False, compare=False)

    def main(self, task: str, method: str) -> Cell:
        """Return a cell of Tables 2 and 7."""
        settings = self.of_method("main", task, method)
        return self.cell(f"main-{task}-{method}", task, SEEDS, **settings)

    def ablation(self, task: str, variant: str) -> Cell:
        """Return a cell of Tables 3 and 6: LaCon without a part, or CE after the projection."""
        if variant == "projection":
            settings = self.of_method("main", task, "ce") | {"objective": "projection"}
        else:
            settings = self.of_method("main", task, "lacon") | ABLATIONS[variant][1]
            if "ler" not in settings.get("label_terms", ("ler",)):
                settings.pop("label_spread", None)
        return self.cell(f"ablation-{task}-{variant}", task, SEEDS, **settings)

    def few_shot(self, task: str, shots: int, method: str) -> Cell:
        """Return a cell of Table 4 and Figure 2."""
        plain = "lacon" if method == "names" else method
        amount = shots if f"few-shot-{task}-{shots}-{plain}" in self.tuned else FEW
        settings = self.of_method("few-shot", task, plain, f"-{amount}")
        if method == "names":
            settings["label_start"] = "names"
        name = f"few-shot-{task}-{shots}-{method}"
        few = {"protocol": "few-a-class", "shots": shots, "epochs": FEW_EPOCHS}
        return self.cell(name, task, FEW_SEEDS, **(settings | few))

    def imbalanced(self, task: str, ratio: int, method: str) -> Cell:
        """Return a cell of Table 5 and Figure 3."""
        numbers: dict[str, Any] = {"protocol": "imbalanced", "shots": RAREST, "epochs": EPOCHS}
        numbers |= {"imbalance": float(ratio)}
        name = f"imbalanced-{task}-{ratio}-{method}"
        # Accuracy would select a model that always predicts the most frequent class.
        numbers |= {"select_by": "matthews"}
        settings = self.of_method("imbalanced", task, method, f"-{ratio}")
        return self.cell(name, task, SEEDS, **(settings | numbers))

    def first_classes(self, task: str, count: int, method: str) -> Cell:
        """Return a cell of Figure 6; with all classes it is a main cell."""
        if count == CLASS_TASKS[task][-1]:
            return self.main(task, method)
        options = {"tasks": {task: {"classes": count}}}
        name = f"classes-{task}-{count}-{method}"
        return self.cell(name, task, SEEDS, **(self.of_method("main", task, method) | options))

    def sweep(self, task: str, what: str, value: float) -> Cell:
        """Return a cell of Figure 5; a default is a main cell, some other values ablation cells."""
        if (what, value) == ("lambda", 0) and task in ABLATED:
            return self.ablation(task, "no-ler")
        setting, _ = SWEEPS[what]
        number: float | None = value
        if what == "heads":
            number = None if value == HEADS else int(value)
        settings = self.of_method("main", task, "lacon") | {setting: number}
        one = self.cell(f"sweep-{task}-{what}-{value:g}", task, SWEEP_SEEDS, **settings)
        others = [self.main(task, "lacon")]
        if task in ABLATED:
            others.append(self.ablation(task, "single-head"))
        return next((other for other in others if other.config == one.config), one)

    def methods(self) -> dict[str, str]:
        """Return the methods of Tables 2 and 7; those at the mean unless all methods are."""
        return METHODS if self.changes.get("pooling") == "mean" else METHODS | AT_MEAN

    def every(self) -> list[Cell]:
        """Return all cells, in the order of the tables and figures."""
        found = [self.main(task, method) for task in TASKS for method in self.methods()]
        found += [self.ablation(t, v) for t in ABLATED for v in (*ABLATIONS, "projection")]
        found += [
            self.few_shot(task, shots, method)
            for task in FEW_TASKS
            for shots in shots_of(task)
            for method in FEW_METHODS
        ]
        both = ("ce", "lacon")
        found += [self.imbalanced(t, r, m) for t in IMBALANCED for r in RATIOS for m in both]
        found += [
            self.first_classes(task, count, method)
            for task, counts in CLASS_TASKS.items()
            for count in counts
            for method in CLASS_METHODS
        ]
        found += [
            self.sweep(task, what, value)
            for task in SWEPT
            for what, (_, points) in SWEEPS.items()
            for value in points
        ]
        return list({one.name: one for one in found}.values())

    @cached_property
    def searches(self) -> list[Search]:
        """Return the grids of rate, temperature and weight of the methods by cell."""
        cells = [(self.main(task, method), method) for task in TASKS for method in METHODS]
        both = ("ce", "lacon")
        cells += [
            (self.few_shot(t, shots, m), m)
            for t in FEW_TASKS
            for shots in shots_of(t)
            for m in both
        ]
        cells += [(self.imbalanced(t, r, m), m) for t in IMBALANCED for r in RATIOS for m in both]
        return [
            Search(
                one,
                {"lr": rates(one.config), **GRIDS.get(method, {})},
                ("dev", task, one.config.select_by or "accuracy"),
            )
            for one, method in cells
            for task in one.config.tasks
        ]

    def of_method(self, kind: str, task: str, method: str, amount: str = "") -> dict[str, Any]:
        """Return the settings of a method: those chosen on dev, else those of its source."""
        name = f"{kind}-{task}{amount}-{method.removesuffix('-mean')}"
        return method_settings(method) | changes_of(self.tuned.get(name, {}))

    def cell(self, name: str, task: str, seeds: tuple[int, ...], **changes: Any) -> Cell:
        """Return a cell with capped examples per class, a twentieth of them for early stopping.

        A name has one configuration, so that a cell is made once.
        """
        if name in self.made:
            return self.made[name]
        most = MOST_OF_MANY if task in DATA_SETS and len(DATA_SETS[task].labels) > 2 else MOST
        if task in ABLATED:
            most = ALL
        config = changed_by_flags(
            self.base,
            tasks={task: {"pair": "joint"} if task in PAIRS else {}},
            protocol="capped",
            shots=self.base.limit if isinstance(self.base.limit, int) else most,
            limit=None,
            epochs=self.epochs or EPOCHS,
            warmup=0.06,
            lr=self.lr,
            head_lr=self.lr,
            select_by=METRICS.get(task),
            **{"pooling": "cls", "batch_size": 16, **self.changes},
        )
        return self.made.setdefault(
            name, Cell(name, changed_by_flags(config, **changes), seeds, training_with_f1)
        )


def shots_of(task: str) -> tuple[int, ...]:
    """Return the numbers of examples per class with which a few-shot task is run."""
    return SHOTS if task == CURVE else (FEW,)


def method_settings(method: str) -> dict[str, Any]:
    """Return the settings of a method, with the values of its own source.

    CE + SCL: the most frequent values of Gunel et al. (2021), section 4.2. CE + CL: ConSERT's
    weights 1 and 0.15 and its temperature (Yan et al., 2021, section 4.1).
    """
    numbers = {
        "scl": {"scl_weight": 0.9, "scl_temperature": 0.3},
        "cl": {"scl_weight": 0.13, "scl_temperature": 0.1},
    }
    objective = method.removesuffix("-mean")
    found = {} if objective == "ce" else {"objective": objective, **numbers.get(method, {})}
    return found | {"pooling": "mean"} if method in AT_MEAN else found


def training_with_f1(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run; add `f1_by_class`, `training_counts` and `test_counts`, a value per class."""
    found = training(config, folder)
    (task,) = config.tasks
    limit = limit_of(config.limit, task)
    train = plain_tasks(config)[task].read(data_folder(config.data), "train", limit)
    assert train.targets is not None
    metrics = Run(folder).metrics
    of_dev, of_test = (metrics["by_class"][split].get(task, {}) for split in ("dev", "test"))
    found["training_counts"] = np.bincount(train.targets, minlength=len(of_dev)).tolist()
    if of_test:
        found["test_counts"] = [figures["support"] for figures in of_test.values()]
        found["f1_by_class"] = [round(figures["f1"], 6) for figures in of_test.values()]
    return found
