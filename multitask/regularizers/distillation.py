"""Distillation: outputs follow those of teachers, which are trained runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from common.later import Tensor
from common.settings import Fraction, Positive, setting
from losses import soft_divergence
from multitask.regularizers.base import Regularizer

if TYPE_CHECKING:
    from multitask.passes import CleanPass


class Distillation(Regularizer, name="distillation"):
    """Learn from the outputs of the runs in `teacher` (born-again networks; Clark et al., 2019).

    The weight is the share of the teacher in a task's loss; the labels have the rest. It falls to 0
    in equal steps over the run, so that the labels have the last word (section 3, teacher
    annealing).
    """

    learns_from_teacher = True
    weight: Fraction | Mapping[str, Fraction] = setting(
        factory=dict,
        help="share of the teacher in the loss, from 0 to 1; the labels have the rest: one for all "
        "tasks, or one by task (default: 1 with --teacher)",
        flag=False,
    )
    temperature: Positive = setting(
        1.0,
        help="temperature of the probabilities of classes; above 1 they are more even",
        flag=False,
    )

    def term(self, clean: "CleanPass") -> Tensor:
        """Return the loss on the teacher's scores - that on the labels: both add up to a mean.

        For classes the former is the divergence of the probabilities at a temperature. For
        similarities and several labels it is the task's own loss, with the scores as labels.
        """
        assert clean.soft is not None, "it acts only on tasks with a teacher"
        kind, outputs = clean.task.kind, clean.outputs
        if kind.classes is None:
            loss = kind.loss(outputs, clean.soft)
        else:
            loss = soft_divergence(kind.scores(outputs), clean.soft, self.temperature)
        return (1 - clean.progress) * (loss - clean.loss)
