"""Objectives that replace the cross-entropy of classification tasks, and their settings.

They are computed in contrastive.py, lacon.py and label_attention.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

from common.errors import UserError
from common.settings import (
    Count,
    Fraction,
    NonNegative,
    NonNegativeInt,
    Positive,
    setting,
)
from losses.objectives import TrainingObjective
from tasks.base import Task

ROUNDING = 1e-9  # tolerance of the sum of two shares
TERMS = ("icl", "lcl", "ler")  # of LaCon's loss
Term = Literal["icl", "lcl", "ler"]
Start = Literal["random", "names"]


class Balance(NamedTuple):
    """How a task's cross-entropy, pull and push become one gradient; see combiners/nested.py."""

    weight: float
    preference: tuple[float, float]
    inputs: str


class Objective(TrainingObjective):
    """An objective that replaces the cross-entropy of classification tasks.

    `trains_only_heads`: it can train heads on a frozen encoder. `own_head`: it has its own head.
    `own_pooling`: it pools the tokens itself. `own_loss`: it does not use the cross-entropy of the
    task's kind. `single_embedding`: it accepts only one embedding per example.
    """

    trains_only_heads: ClassVar[bool] = False
    own_head: ClassVar[bool] = False
    own_pooling: ClassVar[bool] = False
    own_loss: ClassVar[bool] = False
    single_embedding: ClassVar[bool] = False

    def of_task(self, task: Task) -> Task:
        """Return a task with classes, trained by this objective."""
        raise UserError(f"objective {self.name}: expected a method of_task, found none")

    def terms_of(self, task: str) -> tuple[str, ...]:
        """Return the names of the objectives of a task with classes."""
        return (task,)

    @property
    def balance(self) -> Balance | None:
        """Return how a task's three objectives are merged before the combiner; None for one."""
        return None

    def batch_fault(self, size: int) -> str | None:
        """Return an error for a batch size, or None; some terms need several examples."""
        return None

    @property
    def initializes_from_names(self) -> bool:
        """Return whether label embeddings are initialised with those of the classes' names."""
        return getattr(self, "label_start", None) == "names"


def with_objective(task: Task, objective: Objective) -> Task:
    """Return the task trained by an objective; a task without classes is unchanged.

    Raise UserError if the objective returns a task of another name, or other objectives than it
    names.
    """
    if task.kind.classes is None:
        return task
    found, expected = objective.of_task(task), (task.name, objective.terms_of(task.name))
    shown = getattr(found, "name", None), getattr(found, "objectives", None)
    if shown != expected:
        line = "expected of_task (and terms_of, for several losses) to give name and objectives"
        raise UserError(f"objective {objective.name}: {line} {expected}, found {shown}")
    return found


TEMPERATURE, WEIGHT, PREFERENCE = 0.3, 0.3, (0.1, 0.9)
SOURCE = "Moukafih et al., 2022, section 4.1"
TEMPERATURE_HELP = "temperature, which divides the cosines"


def parse_preference(text: str) -> Any:
    """Convert `0.1` on the command line to (0.1, 0.9); return any other text unchanged."""
    try:
        pull = float(text)
    except ValueError:
        return text
    return pull, 1 - pull


class WithContrast(Objective, prefix="scl_"):
    """Cross-entropy with contrastive terms."""

    temperature: Positive = setting(TEMPERATURE, help=TEMPERATURE_HELP, source=SOURCE)
    weight: Fraction = setting(
        WEIGHT,
        help="share of the contrastive terms; cross-entropy has the rest",
        source=SOURCE,
    )

    def faults(self) -> Iterator[str]:
        if self.weight == 1:
            yield "scl_weight: expected a number below 1, found 1, with which no head is trained"

    def batch_fault(self, size: int) -> str | None:
        if size > 1 or not self.weight:
            return None
        return f"batch_size: expected 2 or more with objective {self.name}, found 1"


class WithPullPush(WithContrast):
    """Cross-entropy with pull and push, and a preference between these two."""

    preference: tuple[Fraction, Fraction] = setting(
        PREFERENCE,
        help="preference for pull, on the command line one number from 0 to 1; push has the rest "
        f"(default: 0.1, {SOURCE})",
        metavar="R",
        of_text=parse_preference,
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if abs(sum(self.preference) - 1) > ROUNDING:
            found = self.preference
            yield f"scl_preference: expected two numbers that add up to 1, found {found}"


class SCL(WithContrast, name="scl"):
    """Cross-entropy and the supervised contrastive loss (Gunel et al., 2021)."""

    reduction: Literal["mean", "sum"] = setting(
        "mean", help="of scl over the anchors of a batch; the papers of SCL-MOO and LaCon print sum"
    )

    def of_task(self, task: Task) -> Task:
        from tasks.contrastive import with_supcon

        return with_supcon(task, self)


class LS(WithPullPush, name="ls"):
    """Cross-entropy, and pull and push weighted by a preference (SCL-MOO, Eq. 4 to 6)."""

    def of_task(self, task: Task) -> Task:
        from tasks.contrastive import with_pull_push

        return with_pull_push(task, self)


class ContrastiveEPO(WithPullPush, name="epo"):
    """Cross-entropy, and pull and push balanced by EPO (SCL-MOO, Algorithm 1)."""

    inputs: Literal["contrastive", "combined"] = setting(
        "contrastive", help="losses that EPO balances: pull and push, or each plus cross-entropy"
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if not all(self.preference):
            found = self.preference
            yield f"scl_preference: expected numbers between 0 and 1 for EPO, found {found}"

    def of_task(self, task: Task) -> Task:
        from tasks.contrastive import separate_objectives

        return separate_objectives(task, self)

    def terms_of(self, task: str) -> tuple[str, ...]:
        from tasks import PULL_PUSH

        return tuple(f"{task}/{term}" for term in PULL_PUSH)

    @property
    def balance(self) -> Balance:
        return Balance(self.weight, self.preference, self.inputs)


class CL(WithContrast, name="cl"):
    """Cross-entropy, and SimCSE's loss on a second view of each example (ConSERT)."""

    def of_task(self, task: Task) -> Task:
        from tasks.contrastive import with_infonce

        return with_infonce(task, self)


START_HELP = "initial label embeddings: random, or the embeddings of the classes' names"
LAYERS_HELP = "layers of the objective's own projection head"


class LaCon(Objective, name="lacon"):
    """Contrastive learning of examples and label embeddings (LaCon; Zhang et al., 2022).

    The defaults are within the ranges that section 4.4 recommends.
    """

    trains_only_heads = own_head = own_loss = True
    label_temperature: Positive = setting(0.1, help=TEMPERATURE_HELP)
    label_heads: Count | None = setting(
        None,
        help="slices of the embeddings in the term icl (default: 6 as in the paper, or the next "
        "smaller divisor of the width)",
    )
    label_spread: NonNegative = setting(
        0.5, help="weight of the term ler, which spreads the labels"
    )
    label_terms: tuple[Term, ...] = setting(
        TERMS,
        help="terms of the loss: icl (each example against the labels), lcl (each label against "
        "the examples), ler (spread of the labels)",
        metavar="TERM",
    )
    label_start: Start = setting("random", help=START_HELP)
    projection_layers: NonNegativeInt = setting(3, help=LAYERS_HELP)
    fusion: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        terms = tuple(term for term in TERMS if term in self.label_terms)
        object.__setattr__(self, "label_terms", terms)

    def faults(self) -> Iterator[str]:
        terms = self.label_terms
        if not terms or len(set(terms)) < len(terms):
            yield f"label_terms: expected some of {', '.join(TERMS)}, each once, found {terms}"
        if terms == ("ler",):
            yield "label_terms: expected icl or lcl, found only ler, which trains no encoder"
        if "ler" not in terms and self.label_spread != 0.5:
            yield f"label_spread: expected ler among label_terms, found {self.label_spread}"
        if "icl" not in terms and self.label_heads is not None:
            yield f"label_heads: expected icl among label_terms, found {self.label_heads}"

    def batch_fault(self, size: int) -> str | None:
        if size > 1 or "icl" in self.label_terms:
            return None
        return "batch_size: expected 2 or more without icl among label_terms, found 1"

    def of_task(self, task: Task) -> Task:
        from tasks.lacon import lacon

        return lacon(task, self)


class LaConFusion(LaCon, name="lacon-fusion"):
    """LaCon with attention to the tokens most similar to a label (Zhang et al., 2022, Eq. 9)."""

    trains_only_heads = False
    own_pooling = fusion = True


class LEAM(Objective, name="leam"):
    """Cross-entropy with label-attentive pooling of the tokens (LEAM; Wang et al., 2018)."""

    own_head = own_pooling = own_loss = single_embedding = True
    label_start: Start = setting("random", help=START_HELP)

    def of_task(self, task: Task) -> Task:
        from tasks.label_attention import leam

        return leam(task)


class LSAN(Objective, name="lsan"):
    """Cross-entropy with one text embedding per label (LSAN; Xiao et al., 2019)."""

    own_head = own_pooling = single_embedding = True
    label_start: Start = setting("random", help=START_HELP)

    def of_task(self, task: Task) -> Task:
        from tasks.label_attention import lsan

        return lsan(task)


class Projection(Objective, name="projection"):
    """Cross-entropy after LaCon's projection head (its Table 3, "BERT w/ g")."""

    trains_only_heads = own_head = True
    projection_layers: NonNegativeInt = setting(3, help=LAYERS_HELP)

    def faults(self) -> Iterator[str]:
        if not self.projection_layers:
            yield "projection_layers: expected 1 or more with objective projection, found 0"

    def of_task(self, task: Task) -> Task:
        from tasks.lacon import projected

        return projected(task, self)
