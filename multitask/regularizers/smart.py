"""SMART: predictions should not change under adversarial noise (Jiang et al., 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from common.later import Tensor, torch
from common.random_generators import generator
from common.settings import Count, Positive, setting
from losses.smart import adversarial_noise, example_norm, token_norm
from multitask.regularizers.base import Regularizer

if TYPE_CHECKING:
    from minbert.batching import Batch
    from multitask.passes import CleanPass

BF16_RADIUS = 2**-8  # spacing of bfloat16 numbers; smaller shares are lost in rounding
# Size of the initial noise: as in public implementations; for a ball, a tenth of its radius.
START, START_SHARE = 1e-5, 0.1
RADIUS = 0.1  # of the ball, as a share of the norm of the vectors
STEP = 1e-3  # factor of the gradient, as in public implementations


class Smart(Regularizer, name="smart"):
    """SMART: adversarial noise on embeddings must not change predictions (Jiang et al., 2020).

    The term is divergence(outputs with noise, outputs) (Eq. 1 and 2). The two texts of a pair have
    separate noise and one joint gradient. With `dropout` "fixed" the noisy passes use the dropout
    masks of the clean pass, so that only the noise can change the outputs.

    `radius` and the step size of `projected` are shares of the norm of the vectors that the
    noise is added to, so that they have the same meaning for every encoder. With a share of 0.1,
    noise at the border of the ball has a tenth of the vectors' L2 norm: in the norm `inf` if every
    number is at its bound, 0.1 x the root mean square of its token's vector; in the norm `l2` over
    all tokens of the example.
    """

    steps: Count = setting(1, help="gradient steps that increase the divergence")
    step_size: Positive | None = setting(
        None,
        metavar="X",
        help="with variant projected: length of a step as a share of the vectors' norm (default: "
        "the radius); with variant normalised: factor of the gradient (default: 0.001)",
        flag=False,
    )
    radius: Positive | None = setting(
        None,
        metavar="SHARE",
        help="size of the noise as a share of the norm of the vectors it is added to, which suits "
        "any encoder (default: 0.1; with variant normalised the norm of the noise is 1 for any "
        "vectors)",
        flag=False,
    )
    place: Literal["embeddings", "words"] = setting(
        "embeddings",
        help="add the noise to the output of the embedding module, as public implementations do, "
        "or to the word embeddings, before the module's LayerNorm",
        flag=False,
    )
    norm: Literal["inf", "l2"] = setting(
        "inf", help="norm of the noise and of its gradient", flag=False
    )
    variant: Literal["normalised", "projected"] = setting(
        "normalised",
        help="noise of the same norm at every token, as in public implementations, or projected "
        "into a ball, as in the paper",
    )
    dropout: Literal["fixed", "fresh"] = setting(
        "fixed",
        help="dropout of the noisy pass: the same as in the clean pass, or a new one",
        flag=False,
    )

    def precision_fault(self, precision: str) -> str | None:
        if precision != "bf16" or self.radius is None or self.radius >= BF16_RADIUS:
            return None
        return (
            f"smart_radius: expected {BF16_RADIUS:.4f} or more with precision bf16, whose rounding "
            f"error exceeds smaller noise, found {self.radius}"
        )

    def term(self, clean: CleanPass) -> Tensor:
        noisy = self.noisy(clean, self.noise(clean))
        with self.replay(clean):
            outputs = clean.another_pass(noisy)
        return clean.divergence(outputs, clean.outputs)

    def noisy(self, clean: CleanPass, noise: Tensor) -> Batch:
        """Return the batch with noise (T, H)."""
        return replace(clean.batch, noise=noise, noise_place=self.place)

    def replay(self, clean: CleanPass) -> AbstractContextManager[None]:
        """Return a context that replays the clean pass' dropout if `dropout` is "fixed"."""
        return clean.same_dropout() if self.dropout == "fixed" else nullcontext()

    def noise(self, clean: CleanPass) -> Tensor:
        """Return noise (T, H) that increases the divergence, without gradients of weights."""
        expected = clean.outputs.detach()

        def divergence(noise: Tensor) -> Tensor:
            with self.replay(clean):
                outputs = clean.head(clean.embed(self.noisy(clean, noise)))
                # The share makes it a mean over all examples of the step.
                return clean.divergence(outputs, expected) * clean.part.share

        with without_weight_gradients(clean.model):
            return adversarial_noise(
                divergence,
                self.start(clean),
                clean.batch.example_index,
                variant=self.variant,
                steps=self.steps,
                step_size=self.step_sizes(clean),
                radius=self.radii(clean),
                norm=self.norm,
            )

    def radii(self, clean: CleanPass) -> float | Tensor:
        """Return the radius of the ball (T, 1), or the norm of normalised noise (default: 1)."""
        if self.radius is None and self.variant == "normalised":
            return 1.0
        return (self.radius or RADIUS) * self.norm_of_vectors(clean)

    def step_sizes(self, clean: CleanPass) -> float | Tensor:
        """Return the factor of the gradient, or the length of a step in the ball (T, 1).

        By default this length is the radius.
        """
        if self.variant == "normalised":
            return self.step_size or STEP
        if self.step_size is None:
            return self.radii(clean)
        return self.step_size * self.norm_of_vectors(clean)

    def norm_of_vectors(self, clean: CleanPass) -> Tensor:
        """Return the norm (T, 1) that radius and step size are shares of, without dropout."""
        with torch.no_grad():
            embeddings = clean.model.bi_encoder.encoder.embeddings
            vectors = embeddings.vectors(clean.batch, self.place)
            if self.norm == "inf":
                return token_norm(vectors, "l2") / math.sqrt(vectors.shape[1])
            if self.variant == "normalised":
                return token_norm(vectors, "l2")
            return example_norm(vectors, clean.batch.example_index, "l2")

    def start(self, clean: CleanPass) -> Tensor:
        """Return normal noise (T, H) by example and step, whatever piece of a batch this is."""
        batch, width = clean.batch, clean.model.bi_encoder.word_width
        lengths = batch.lengths.view(batch.texts, -1).numpy()  # (texts, B)
        drawn = []
        for row, tokens in zip(clean.part.indices, lengths.T, strict=True):
            purpose = f"adversarial noise of {clean.task.name}"
            draw = generator(clean.seed, purpose, clean.step, int(row))
            noise = torch.from_numpy(draw.standard_normal((tokens.sum(), width), "float32"))
            drawn.append(noise.split(tokens.tolist()))
        by_text = zip(*drawn, strict=True)
        noise = torch.cat([one for text in by_text for one in text]).to(batch.device)
        if self.variant == "normalised":
            return START * noise
        if self.norm == "l2":
            noise = noise / example_norm(noise, batch.example_index, "l2")
        return START_SHARE * self.radii(clean) * noise


@contextmanager
def without_weight_gradients(model: Any) -> Iterator[None]:
    """Exclude the model's weights from differentiation in this context."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_()
