"""SuperConText's experiments as configurations: losses, projection heads, hard negatives, sweeps.

Moukafih, Sbihi, Ghogho and Smaili (2023): "SuperConText: Supervised Contrastive Learning Framework
for Textual representations". Every cell pre-trains with a loss, then evaluates the encoder by
logistic regression on its frozen embeddings. Cells of Tables 3 and 4 also fine-tune the encoder
with cross-entropy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from common.settings import hints_of_fields, methods
from losses.objectives import PretrainObjective
from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from studies.results import Cell
from studies.supercontext.evaluation import Vectors, Words, pretrain_and_evaluate
from studies.tuning import Search, Tuned, changes_of, rates

LOSSES = {
    "ce": "Cross-entropy",
    "class-triplet": "Triplet",
    "npair": "N-pair",
    "supcon": "SupCon",
    "superloss": "SuperLoss",
}
# Cross-entropy with the batches of the other losses, so that a difference is not that of batches.
CONTROLS = {"ce-balanced": "Cross-entropy, balanced"}
COMPARED = LOSSES | CONTROLS
TASKS = (
    *("sst2", "sst", "trec", "cfimdb"),
    *("imdb", "yelp2", "yelp5", "amazon2", "amazon5", "msac", "asac"),
)
HEADS = ("none", "linear", "nonlinear")
SEEDS = tuple(range(1, 7))
FEW_SEEDS = {"cfimdb": SEEDS[:2]}  # its texts are long
SWEEP_SEEDS = SEEDS[:3]
# Tasks of hard negatives and projection heads: the paper's, and SST-5, which is public.
ABLATED = tuple(task for task in TASKS if task not in ("trec", "cfimdb"))
SWEPT = "sst"  # five classes, like Yelp-F, on which the paper sweeps its settings
HARD = {"top_k": (5, 20), "threshold": (0.0, 0.5), "top_fraction": (0.1, 0.5)}
HARD_AFTER = 1 / 3  # fraction of the epochs: 20 of 60 in the paper
SWEEPS: dict[str, tuple[float, ...]] = {  # Figures 4 and 5
    "layers": (1, 2, 3),
    "units": (100, 200, 300, 512, 768),
    "batch": (50, 100, 200, 400),
    "tau": (0.05, 0.1, 0.3, 0.5, 1.0),
    "positives": (5, 10, 20, 39),
    "negatives": (10, 40, 80, 160),
}
CONTRAST = {"contrast_temperature": (0.05, 0.1, 0.3, 0.5, 1.0)}
GRIDS = {
    "class-triplet": {"margin": (0.1, 0.3, 0.5, 0.8, 1.0)},
    "supcon": CONTRAST,
    "superloss": CONTRAST,
}
CE_BATCHES = (16, 32, 64, 200, 400)
EVERY = {
    "positives": 39,
    "negatives": 160,
}  # all of them in the small setting's batches of 40 per class
BOTH = ("layers", "units", "batch")  # the paper also shows these for cross-entropy


@dataclass(frozen=True)
class Setting:
    """Hyperparameters of a kind of encoder; `words` is a BiLSTM's shape, None for `--encoder`."""

    lr: float
    epochs: int
    batch_size: int
    ce_batch_size: int  # the best for cross-entropy
    words: Words | None


# Section IV.B: `small` for MSAC and ASAC, `large` for the large sets. `given` is ours.
SETTINGS = {
    "small": Setting(0.003, 15, 200, 64, Words(1, 128, 0.2)),
    "given": Setting(1e-4, 2, 64, 16, None),
    "large": Setting(0.001, 60, 800, 500, Words(3, 512, 0.3)),
}
NOT_TUNED = "margins, temperatures and rates are not tuned for each loss"
TEMPERATURE = 0.1
CHECKPOINT_EVERY = 5  # epochs; the last checkpoint counts
FIRST = ("small", "given")  # the default; `large` must be requested


@dataclass(frozen=True)
class Experiments:
    """The cells of a base configuration, which sets data, limits, encoder and precision.

    `epochs` replaces the study's values, and `lr` that of the setting `given`. Settings `tuned` for
    a cell of Tables 3 and 4 hold for the other cells of its setting, task and loss.
    """

    base: RunConfig
    epochs: int | None = None
    lr: float | None = None
    vectors: Vectors | None = None
    tuned: Tuned = field(default_factory=dict)
    made: dict[tuple[str, bool], Cell] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def main(self, setting: str, task: str, loss: str, fine_tuned: bool = True) -> Cell:
        """Return a cell of Tables 3 and 4; without `fine_tuned`, only the frozen encoders."""
        name = f"{setting}-{task}-{loss}"
        return self.cell(name, setting, task, loss, fine_tuned=fine_tuned)

    def head(self, setting: str, task: str, head: str) -> Cell:
        """Return a cell of Table 2; with the non-linear head it is SuperLoss' cell of Table 4."""
        if head == "nonlinear":
            return self.main(setting, task, "superloss")
        name = f"{setting}-{task}-head-{head}"
        return self.cell(name, setting, task, "superloss", projection_head=head)

    def hard(self, setting: str, task: str, kind: str, amount: float) -> Cell:
        """Return a cell of Table 5, Figure 5c: only hard negatives after a third of the epochs."""
        name = f"{setting}-{task}-hard-{kind}-{amount:g}"
        hard: dict[str, Any] = {f"hard_{kind}": amount, "hard_after": self.hard_after(setting)}
        return self.cell(name, setting, task, "superloss", **hard)

    def hard_after(self, setting: str) -> int:
        """Return the number of epochs with all negatives; 0 of a single epoch."""
        epochs = self.epochs or SETTINGS[setting].epochs
        return min(max(1, round(epochs * HARD_AFTER)), epochs - 1)

    def sweep(self, what: str, value: float, loss: str = "superloss") -> Cell:
        """Return a cell of Figures 4, 5a, 5b: one changed setting; its default is the main cell."""
        words = SETTINGS["small"].words
        assert words is not None
        changes: dict[str, Any] = {}
        if what in ("layers", "units"):
            words = replace(words, **{what: int(value)})
        elif what == "batch":
            changes["batch_size"] = int(value)
        elif what == "tau":
            changes["contrast_temperature"] = value
        else:
            changes[what] = None if value == EVERY[what] else int(value)
        name = f"sweep-{what}-{value:g}-{loss}"
        one = self.cell(name, "small", SWEPT, loss, words, SWEEP_SEEDS, **changes)
        own = self.main("small", SWEPT, loss)
        return own if one.config == own.config else one

    def every(self) -> list[Cell]:
        """Return all cells, in the order of the tables and figures."""
        found = [self.main(s, t, loss) for s in SETTINGS for t in TASKS for loss in COMPARED]
        for setting in SETTINGS:
            found += [self.head(setting, task, head) for task in ABLATED for head in HEADS]
            found += [
                self.hard(setting, task, kind, amount)
                for task in ABLATED
                for kind, amounts in HARD.items()
                for amount in amounts
            ]
        found += [self.sweep(*point) for point in sweep_points()]
        return list({one.name: one for one in found}.values())

    @cached_property
    def searches(self) -> list[Search]:
        """Return the grids of the rate and of each loss's margin or temperature by cell.

        Trials are not fine-tuned: linear evaluation chooses.
        """
        mains = [
            (self.main(s, t, loss, fine_tuned=False), t, loss)
            for s in SETTINGS
            for t in TASKS
            for loss in COMPARED
        ]
        return [
            Search(
                one,
                {"lr": rates(one.config), **GRIDS.get(loss, {})},
                ("linear", "dev", task, "accuracy"),
            )
            for one, task, loss in mains
        ]

    def cell(
        self,
        name: str,
        setting: str,
        task: str,
        loss: str,
        words: Words | None = None,
        seeds: tuple[int, ...] | None = None,
        fine_tuned: bool = False,
        **changes: Any,
    ) -> Cell:
        """Return a cell with the pre-training configuration; a BiLSTM's shape is in its name.

        A name has one configuration, so that a cell is made once.
        """
        if (key := (name, fine_tuned)) in self.made:
            return self.made[key]
        numbers = SETTINGS[setting]
        words = words or numbers.words
        epochs = self.epochs or numbers.epochs
        lr = self.lr if self.lr and words is None else numbers.lr
        settings: dict[str, Any] = {
            "mode": "single",
            "batch_size": numbers.ce_batch_size,
        }
        if loss != "ce":
            settings |= {"batch_size": numbers.batch_size, "class_balanced": True}
        if loss not in ("ce", *CONTROLS):
            settings |= {
                "mode": "pretrain",
                "objective": loss,
                "projection_head": "nonlinear",
            }
            if "contrast_temperature" in hints_of_fields(methods(PretrainObjective)[loss]):
                settings["contrast_temperature"] = TEMPERATURE
        chosen = {"lr": lr, **self.tuned.get(f"{setting}-{task}-{loss}", {})}
        # Some cells train no layer but the encoder's, for which a new head_lr would be refused.
        every_cell = changed_by_flags(self.base, **changes_of({"lr": chosen.pop("lr")}))
        config = changed_by_flags(
            every_cell,
            tasks=(task,),
            protocol="held-out",
            drop_leaks="own",
            encoder=self.base.encoder if words is None else words.name(self.vectors),
            epochs=epochs,
            evaluate_every=min(CHECKPOINT_EVERY, epochs),
            keep="last",
            weight_decay=0.0,  # Adam
            precision=self.base.precision if words is None else "fp32",
            **(settings | chosen | changes),
        )
        work = partial(
            pretrain_and_evaluate,
            words=words,
            vectors=self.vectors,
            fine_tuned_batch_size=numbers.ce_batch_size if fine_tuned else None,
        )
        own = FEW_SEEDS.get(task, SEEDS)
        return self.made.setdefault(key, Cell(name, config, seeds or own, work))


def sweep_points() -> list[tuple[str, float, str]]:
    """Return tuples of a swept setting, its value and the loss."""
    found: list[tuple[str, float, str]] = []
    for what, values in SWEEPS.items():
        found += [(what, value, "superloss") for value in values]
        if what in BOTH:
            points = CE_BATCHES if what == "batch" else values
            found += [(what, value, "ce") for value in points]
    return found
