"""Optimisers with separate learning rates for encoder and heads, and their schedules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from common.errors import RunError, UserError
from common.later import nn, torch
from common.settings import Fraction, NonNegative, Positive, Ratio, Settings, setting

CHOSEN = "chosen for minilm, on STS dev"


class Optimizer(Settings):
    """An optimiser, with one learning rate for the encoder and one for the heads.


    The default rates were chosen for all-MiniLM-L6-v2 in our experiments (results/, on STS dev);
    BEES fine-tunes BERT base at 2e-5. `of_encoder` names the settings that act on the encoder only.
    """

    of_encoder: ClassVar[tuple[str, ...]] = ("lr",)
    lr: Positive = setting(
        1e-4,
        help="peak learning rate of the encoder",
        metavar="RATE",
        common=True,
        source=CHOSEN,
    )
    head_lr: Positive = setting(
        1e-4,
        help="peak learning rate of the heads",
        metavar="RATE",
        common=True,
        source=CHOSEN,
    )

    def build(self, model: Any) -> torch.optim.Optimizer:
        """Return the optimiser of an `EncoderWithHeads`; each parameter group has its `peak_lr`."""
        raise UserError(f"optimizer {self.name}: expected build")


class AdamW(Optimizer, name="adamw"):
    """Fused AdamW (Loshchilov and Hutter, 2019), without decay of biases and normalisation."""

    of_encoder = ("lr", "layer_decay")
    weight_decay: NonNegative = setting(0.01, help="weight decay of matrices (BEES, section 5.3)")
    layer_decay: Ratio = setting(
        1.0,
        help="learning rate of an encoder layer as a share of that of the layer above it (Howard "
        "and Ruder, 2018, section 3.2); the embeddings count as the lowest layer",
    )

    def build(self, model: Any) -> torch.optim.Optimizer:
        groups: list[dict[str, Any]] = []
        for several, rate in self.rates(model):
            parameters = [p for p in several if p.requires_grad]
            for decay, chosen in (
                (self.weight_decay, [p for p in parameters if p.ndim > 1]),
                (0.0, [p for p in parameters if p.ndim <= 1]),
            ):
                if chosen:
                    groups.append(
                        {"params": chosen, "lr": rate, "peak_lr": rate, "weight_decay": decay}
                    )
        return torch.optim.AdamW(groups, fused=True)

    def rates(self, model: Any) -> Iterable[tuple[Iterable[nn.Parameter], float]]:
        """Yield parameters with their peak rate.

        Layer l of L has the rate lr x layer_decay^(L - l), and the embeddings are layer 0. The own
        layers of a task have the rate of the layers that they replace.
        """
        if self.layer_decay == 1:
            yield model.bi_encoder.parameters(), self.lr
        else:
            for below, section in enumerate(reversed(model.sections().values())):
                yield section, self.lr * self.layer_decay**below
        yield model.heads.parameters(), self.head_lr
        branches: Iterable[Any] = model.branches.values()
        for layers in branches:
            for below, layer in enumerate(reversed(layers)):
                yield layer.parameters(), self.lr * self.layer_decay**below


class LrSchedule(Settings):
    """The change of the learning rates over a run."""

    warmup: Fraction = setting(
        0.1,
        help="share of the steps over which the learning rates rise",
        source="Reimers and Gurevych, 2019, section 3.1",
    )

    def factor(self, step: int, total: int) -> float:
        """Return the share of the peak rate in step `step` (from 0) of `total`."""
        raise UserError(f"lr schedule {self.name}: expected factor")


class Linear(LrSchedule, name="linear"):
    """Linear increase during the warm-up, then linear decrease to 0."""

    def factor(self, step: int, total: int) -> float:
        rising = max(1, round(total * self.warmup))
        if step < rising:
            return (step + 1) / rising
        return max(0.0, (total - step) / max(1, total - rising))


class Constant(LrSchedule, name="constant"):
    """Linear increase during the warm-up, then a constant rate."""

    def factor(self, step: int, total: int) -> float:
        return min(1.0, (step + 1) / max(1, round(total * self.warmup)))


def scheduled(schedule: LrSchedule, step: int, probing: int, total: int) -> float:
    """Return the share of the peak rates in step `step` (from 0) of `total`.

    If the first `probing` steps train only the heads (Kumar et al., 2022), these and the later
    steps each have a complete schedule.
    """
    step, total = (step, probing) if step < probing else (step - probing, total - probing)
    found = schedule.factor(step, total)
    if not 0 <= found < math.inf:
        line = f"expected a factor of 0 or more in step {step} of {total}, found {found}"
        raise RunError(f"lr schedule {schedule.name}: {line}")
    return found


def build_optimizer(method: Optimizer, model: Any) -> torch.optim.Optimizer:
    """Return the optimiser of a model; raise RunError if `build` returns something else."""
    found = method.build(model)
    groups = getattr(found, "param_groups", None)
    if groups is None or not all("peak_lr" in group for group in groups):
        expected = "expected build to return an optimiser of PyTorch, with peak_lr in each group"
        shown = f"found {type(found).__name__}" + ("" if groups is None else " without it")
        raise RunError(f"optimizer {method.name}: {expected}, {shown}")
    return found


def set_learning_rate(optimizer: torch.optim.Optimizer, factor: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["peak_lr"] * factor


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale the gradients to a total norm of at most `max_norm`; return the norm before.

    As `torch.nn.utils.clip_grad_norm_`, but shorter gradients are left alone: multiplying them by 1
    would read and write all of them.
    """
    from torch.nn.utils import clip_grads_with_norm_, get_total_norm

    trained = [p for p in parameters if p.grad is not None]
    norm = get_total_norm([p.grad for p in trained if p.grad is not None])
    if not norm <= max_norm:  # NaN, too, reaches the gradients
        clip_grads_with_norm_(trained, max_norm, norm)
    return float(norm)
