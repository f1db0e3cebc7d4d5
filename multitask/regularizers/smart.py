"""SMART: predictions should not change under adversarial noise (Jiang et al., 2020)."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from common.later import Tensor, torch
from common.settings import MANY, Count, setting
from losses.smart import adversarial_noise, token_norm
from multitask.regularizers.base import Regularizer
from multitask.sampling import generator

if TYPE_CHECKING:
    from multitask.passes import CleanPass

# Of the noise, as a share. Bfloat16 numbers have this spacing: a smaller share is lost in rounding.
Radius = Annotated[float, Meta(ge=2**-8, le=MANY)]
# Size of the initial noise: as in public implementations; for a ball, a tenth of its radius.
START, START_SHARE = 1e-5, 0.1
RADIUS = 0.1  # of the ball, as a share of the norm of the vectors
STEP = 1e-3  # factor of the gradient, as in public implementations


class Smart(Regularizer, name="smart"):
    """SMART: adversarial noise on embeddings must not change predictions (Jiang et al., 2020).

    The term is divergence(outputs with noise, outputs) (Eq. 1 and 2). The two texts of a pair have
    separate noise and one joint gradient. It is added to the output of the embedding module. The
    noisy passes use the dropout masks of the clean pass, so that only the noise can change the
    outputs.

    `radius` is a share of the root mean square of a token's vector, so that it has the same meaning
    for every encoder. A step of `projected` has the length of the radius.
    """

    steps: Count = setting(1, help="gradient steps that increase the divergence")
    radius: Radius | None = setting(
        None,
        metavar="SHARE",
        help="size of the noise as a share of the norm of the vectors it is added to, which suits "
        "any encoder (default: 0.1; with variant normalised the norm of the noise is 1 for any "
        "vectors)",
        flag=False,
    )
    variant: Literal["normalised", "projected"] = setting(
        "normalised",
        help="noise of the same norm at every token, as in public implementations, or projected "
        "into a ball, as in the paper",
    )

    def term(self, clean: "CleanPass") -> Tensor:
        noisy = replace(clean.batch, noise=self.noise(clean))
        with clean.same_dropout():
            outputs = clean.another_pass(noisy)
        distance = clean.task.kind.divergence
        assert distance is not None, "its outputs can be compared"
        return distance(outputs, clean.outputs)

    def noise(self, clean: "CleanPass") -> Tensor:
        """Return noise (T, H) that increases the divergence, without gradients of weights."""
        expected, name = clean.outputs.detach(), clean.task.name
        distance = clean.task.kind.divergence
        assert distance is not None, "its outputs can be compared"

        def divergence(noise: Tensor) -> Tensor:
            with clean.same_dropout():
                texts = clean.model.embed(replace(clean.batch, noise=noise), name)
                # The share makes it a mean over all examples of the step.
                return distance(clean.model.heads[name](*texts), expected) * clean.part.share

        normalised, radius = self.variant == "normalised", self.radii(clean)
        noise = self.normal(clean)
        return adversarial_noise(
            divergence,
            START * noise if normalised else START_SHARE * radius * noise,
            clean.batch.example_index,
            variant=self.variant,
            steps=self.steps,
            step_size=STEP if normalised else radius,
            radius=radius,
        )

    def radii(self, clean: "CleanPass") -> float | Tensor:
        """Return the radius of the ball (T, 1), or the norm of normalised noise (default: 1)."""
        if self.radius is None and self.variant == "normalised":
            return 1.0
        with torch.no_grad():  # and without dropout
            vectors = clean.model.bi_encoder.encoder.embeddings.vectors(clean.batch)
            root_mean_square = token_norm(vectors, "l2") / math.sqrt(vectors.shape[1])
            return (self.radius or RADIUS) * root_mean_square

    def normal(self, clean: "CleanPass") -> Tensor:
        """Return normal noise (T, H) by example and step, whatever piece of a batch this is."""
        batch = clean.batch
        width = clean.model.encoder.embeddings.word.weight.shape[1]
        lengths = batch.lengths.view(batch.texts, -1).numpy()  # (texts, B)
        drawn = []
        for row, tokens in zip(clean.part.indices, lengths.T, strict=True):
            purpose = f"adversarial noise of {clean.task.name}"
            draw = generator(clean.seed, purpose, clean.step, int(row))
            noise = torch.from_numpy(draw.standard_normal((tokens.sum(), width), "float32"))
            drawn.append(noise.split(tokens.tolist()))
        by_text = zip(*drawn, strict=True)
        return torch.cat([one for text in by_text for one in text]).to(batch.device)
