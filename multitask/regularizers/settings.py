"""Regularisers as their users set them. No torch is imported here.

What they compute is in base.py, smart.py, proximal.py and r_drop.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from common.errors import UserError
from common.settings import Count, FromZero, Positive, Settings, Share, setting

if TYPE_CHECKING:
    from torch import Tensor

    from multitask.model import EncoderWithHeads
    from multitask.regularizers.base import Clean, Running

BF16_RADIUS = 2**-8  # the spacing of bfloat16 numbers: smaller shares are rounded away


class Regularizer(Settings):
    """A term that the loss of some tasks gets, by `weight`: a number for all tasks, or by task.

    A method that remembers nothing gives `term`. Another one gives `build`, which makes an object
    for a run: see `Running` in base.py. Its settings have its name before theirs in flags and JSON.
    """

    weight: FromZero | Mapping[str, FromZero] = setting(
        factory=dict, help="weight of the term: one for all tasks, or TASK=W", metavar="W"
    )

    def __init_subclass__(cls, *, name: str = "", **more: Any) -> None:
        super().__init_subclass__(name=name, prefix=f"{name.replace('-', '_')}_", **more)

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each task that has one."""
        return self.weight if isinstance(self.weight, Mapping) else {}

    def term(self, clean: Clean) -> Tensor:
        """The term of some examples, a scalar, before its weight."""
        raise UserError(f"regularizer {self.name}: expected term or build")

    def build(self, model: EncoderWithHeads, seed: int) -> Running:
        """What adds the term in one run."""
        from multitask.regularizers.base import Weighted

        return Weighted(self.weights, self.term)

    def precision_fault(self, precision: str) -> str | None:
        """A sentence on why the term needs another precision; None where it does not."""
        return None


class Smart(Regularizer, name="smart"):
    """Adversarial noise on the embeddings must not move the predictions (Jiang et al., 2020)."""

    steps: Count = setting(1, help="steps up the divergence")
    step_size: Positive | None = setting(
        None,
        metavar="X",
        help="length of a step as a share of the vectors' norm, with variant projected (default: "
        "the radius); factor of the gradient with variant normalised (default: 0.001)",
    )
    radius: Positive | None = setting(
        None,
        metavar="SHARE",
        help="size of the noise as a share of the norm of the vectors it is added to, which "
        "carries over from one encoder to another (default: 0.1; with variant normalised a norm "
        "of 1, whatever the vectors)",
    )
    place: Literal["embeddings", "words"] = setting(
        "embeddings",
        help="add the noise to the output of the embedding module, as public implementations do, "
        "or to the word embeddings, before the module's LayerNorm",
    )
    norm: Literal["inf", "l2"] = setting("inf", help="norm of noise and gradient")
    variant: Literal["normalised", "projected"] = setting(
        "normalised",
        help="noise of one norm at every token, as public implementations do, or projected into a "
        "ball, as in the paper",
    )
    dropout: Literal["fixed", "fresh"] = setting(
        "fixed", help="dropout of the noisy pass: that of the clean pass, or another one"
    )

    def build(self, model: EncoderWithHeads, seed: int) -> Running:
        from multitask.regularizers.smart import SmartTerm

        return SmartTerm(self, seed)

    def precision_fault(self, precision: str) -> str | None:
        if precision != "bf16" or self.radius is None or self.radius >= BF16_RADIUS:
            return None
        return (
            f"smart_radius: expected {BF16_RADIUS:.4f} at least with precision bf16, which rounds "
            f"by more than such noise, found {self.radius}"
        )


class Proximal(Regularizer, name="proximal"):
    """Predictions stay near those of a running mean of the model (SMART, section 3.2)."""

    momentum: Share = setting(
        0.99, help="momentum of the running mean", source="SMART's in the first tenth of a run"
    )

    def build(self, model: EncoderWithHeads, seed: int) -> Running:
        from multitask.regularizers.proximal import ProximalTerm

        return ProximalTerm(self.weights, self.momentum, model)


class RDrop(Regularizer, name="r-drop"):
    """Two passes with different dropout agree (R-Drop; Liang et al., 2021)."""

    def build(self, model: EncoderWithHeads, seed: int) -> Running:
        from multitask.regularizers.r_drop import RDropTerm

        return RDropTerm(self.weights)
