"""LaCon, which contrasts examples and label embeddings, and LEAM and LSAN, which it compares with.

Here LSAN has a softmax over the labels instead of sigmoids, as in LaCon's comparison.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from common.later import F, Tensor, torch
from common.settings import Count, NonNegative, NonNegativeInt, Positive, setting
from losses import instance_centered_loss, label_centered_loss, label_embedding_regularizer
from losses.lacon import lowest_label_centered
from tasks.base import Task, lazy_head
from tasks.kinds import Outputs
from tasks.objectives import Objective

Term = Literal["icl", "lcl", "ler"]
LAYERS_HELP = "layers of the objective's own projection head"


class LaCon(Objective, name="lacon"):
    """Contrastive learning of examples and label embeddings (LaCon; Zhang et al., 2022)."""

    trains_only_heads = own_head = own_loss = True
    label_temperature: Positive = setting(
        0.1, help="temperature, which divides the cosines", flag=False
    )
    label_heads: Count = setting(
        6,
        help="slices of the embeddings in the term icl; or the next divisor of the width below",
        source="Zhang et al., 2022, Figure 5b",
        flag=False,
    )
    label_spread: NonNegative = setting(
        0.5, help="weight of the term ler, which spreads the labels", flag=False
    )
    label_terms: Annotated[tuple[Term, ...], Meta(min_length=1)] = setting(
        ("icl", "lcl", "ler"),
        help="terms of the loss: icl (each example against the labels), lcl (each label against "
        "the examples), ler (spread of the labels)",
        metavar="TERM",
        flag=False,
    )
    projection_layers: NonNegativeInt = setting(3, help=LAYERS_HELP, flag=False)
    head: ClassVar[str] = "LabelAnchors"

    def of_task(self, task: Task) -> Task:
        """Return a task with ICL' + LCL + weight LER (Eq. 7), predicting the nearest label (Eq. 8).

        LCL is measured from the lowest value that the batch's labels allow, as combiners require.
        """
        temperature = self.label_temperature

        def loss(outputs: Outputs, targets: Tensor) -> Tensor:
            instances, labels = outputs
            given = instances, labels, targets, temperature
            width, most = labels.shape[1], self.label_heads
            heads = next(count for count in range(most, 0, -1) if width % count == 0)
            terms = {
                "icl": instance_centered_loss(*given, heads),
                "lcl": label_centered_loss(*given) - lowest_label_centered(targets, temperature),
                "ler": self.label_spread * label_embedding_regularizer(labels),
            }
            return torch.stack([terms[one] for one in terms if one in self.label_terms]).sum()

        def scores(outputs: Outputs) -> Tensor:
            unit, labels = (F.normalize(vectors, dim=-1) for vectors in outputs)
            return (unit @ labels.T / temperature).softmax(-1)

        kind = replace(task.kind, loss=loss, scores=scores, divergence=None)
        sizes = {"classes": len(task.kind.names), "texts": task.vectors}
        build_head = lazy_head(self.head, layers=self.projection_layers, **sizes)
        return replace(task, kind=kind, build_head=build_head, losses={}, compares_examples=True)


class LaConFusion(LaCon, name="lacon-fusion"):
    """LaCon with attention to the tokens most similar to a label (Zhang et al., 2022, Eq. 9)."""

    trains_only_heads = False
    head = "FusedAnchors"


class Projection(Objective, name="projection"):
    """Cross-entropy after LaCon's projection head (its Table 3, "BERT w/ g")."""

    trains_only_heads = own_head = True
    projection_layers: Count = setting(3, help=LAYERS_HELP, flag=False)

    def of_task(self, task: Task) -> Task:
        sizes = {"classes": len(task.kind.names), "texts": task.vectors}
        build_head = lazy_head("Projected", layers=self.projection_layers, **sizes)
        return replace(task, build_head=build_head, losses={})


class LEAM(Objective, name="leam"):
    """Cross-entropy with label-attentive pooling of the tokens (LEAM; Wang et al., 2018)."""

    own_head = own_loss = single_embedding = True

    def of_task(self, task: Task) -> Task:
        """Return a task with cross-entropy of the examples and label embeddings (Eq. 8 and 9)."""

        def loss(outputs: Outputs, targets: Tensor) -> Tensor:
            logits, of_labels = outputs
            own = torch.arange(len(of_labels), device=targets.device)
            return F.cross_entropy(logits, targets) + F.cross_entropy(of_labels, own)

        kind = replace(
            task.kind, loss=loss, scores=lambda outputs: outputs[0].softmax(-1), divergence=None
        )
        build_head = lazy_head("JointEmbedding", classes=len(task.kind.names))
        return replace(task, kind=kind, build_head=build_head, losses={})


class LSAN(Objective, name="lsan"):
    """Cross-entropy with one text embedding per label (LSAN; Xiao et al., 2019)."""

    own_head = single_embedding = True

    def of_task(self, task: Task) -> Task:
        build_head = lazy_head("LabelSpecific", classes=len(task.kind.names))
        return replace(task, build_head=build_head, losses={})
