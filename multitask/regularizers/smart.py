"""SMART in a training step: predictions should not change under adversarial noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from common.random_generators import generator
from losses import adversarial_noise
from losses.smart import example_norm, token_norm
from minbert.batching import Batch
from multitask.model import EncoderWithHeads
from multitask.random_state import replayed
from multitask.regularizers import Smart
from multitask.regularizers.base import CleanPass, RegularizerState, Term

# Size of the initial noise: as in public implementations; for a ball, a tenth of its radius.
START, START_SHARE = 1e-5, 0.1
RADIUS = 0.1  # of the ball, as a share of the norm of the vectors
STEP = 1e-3  # factor of the gradient, as in public implementations


class SmartTerm(RegularizerState):
    """weight x divergence(outputs with noise, outputs) (Jiang et al., 2020, Eq. 1 and 2).

    The noise comes from `losses.adversarial_noise` and is added at `place`: to the output of
    the embedding module, as in public implementations, or to its word embeddings, before its
    LayerNorm. The two texts of a pair have separate noise and one joint gradient. With `dropout`
    "fixed" the noisy passes use the dropout masks of the clean pass, so that only the noise can
    change the outputs.

    `radius` and the step size of `projected` are shares of the norm of the vectors that the
    noise is added to, so that they have the same meaning for every encoder. With a share of 0.1,
    noise at the border of the ball has a tenth of the vectors' L2 norm: in the norm `inf` if every
    number is at its bound, 0.1 x the root mean square of its token's vector; in the norm `l2` over
    all tokens of the example.
    """

    def __init__(self, settings: Smart, seed: int) -> None:
        self.settings, self.seed, self.weights = settings, seed, settings.weights

    def __call__(self, clean: CleanPass) -> Term:
        noise = self.noise(clean)
        with self.dropout(clean):
            noisy, outputs = clean.another_pass(self.noisy(clean, noise))
        divergence = clean.divergence(outputs, clean.outputs)
        return Term(self.weights[clean.task.name] * divergence, [noisy])

    def noisy(self, clean: CleanPass, noise: Tensor) -> Batch:
        """Return the batch with noise (T, H)."""
        return replace(clean.batch, noise=noise, noise_place=self.settings.place)

    def noise(self, clean: CleanPass) -> Tensor:
        """Return noise (T, H) that increases the divergence, without gradients of weights."""
        settings, model = self.settings, clean.model
        expected = clean.outputs.detach()

        def divergence(noise: Tensor) -> Tensor:
            with self.dropout(clean):
                outputs = clean.head(clean.embed(self.noisy(clean, noise)))
                # The share makes it a mean over all examples of the step.
                return clean.divergence(outputs, expected) * clean.part.share

        with without_weight_gradients(model):
            return adversarial_noise(
                divergence,
                self.start(clean),
                clean.batch.example_index,
                variant=settings.variant,
                steps=settings.steps,
                step_size=self.step_size(clean),
                radius=self.radius(clean),
                norm=settings.norm,
            )

    def radius(self, clean: CleanPass) -> float | Tensor:
        """Return the radius of the ball (T, 1), or the norm of normalised noise (default: 1)."""
        share = self.settings.radius
        if share is None and self.settings.variant == "normalised":
            return 1.0
        return (share or RADIUS) * self.norm_of_vectors(clean)

    def step_size(self, clean: CleanPass) -> float | Tensor:
        """Return the factor of the gradient, or the length of a step in the ball (T, 1).

        By default this length is the radius.
        """
        share = self.settings.step_size
        if self.settings.variant == "normalised":
            return share or STEP
        return self.radius(clean) if share is None else share * self.norm_of_vectors(clean)

    @torch.no_grad()
    def norm_of_vectors(self, clean: CleanPass) -> Tensor:
        """Return the norm (T, 1) that radius and step size are shares of, without dropout."""
        embeddings = clean.model.bi_encoder.encoder.embeddings
        vectors = embeddings.vectors(clean.batch, self.settings.place)
        if self.settings.norm == "inf":
            return token_norm(vectors, "l2") / math.sqrt(vectors.shape[1])
        if self.settings.variant == "normalised":
            return token_norm(vectors, "l2")
        return example_norm(vectors, clean.batch.example_index, "l2")

    def start(self, clean: CleanPass) -> Tensor:
        """Return normal noise (T, H) by example and step, whatever piece of a batch this is."""
        settings, batch = self.settings, clean.batch
        width = clean.model.bi_encoder.word_width
        lengths = batch.lengths.view(batch.texts, -1).numpy()  # (texts, B)
        drawn = []
        for row, tokens in zip(clean.part.indices, lengths.T, strict=True):
            purpose = f"adversarial noise of {clean.task.name}"
            draw = generator(self.seed, purpose, clean.step, int(row))
            noise = torch.from_numpy(draw.standard_normal((tokens.sum(), width), "float32"))
            drawn.append(noise.split(tokens.tolist()))
        by_text = zip(*drawn, strict=True)
        noise = torch.cat([one for text in by_text for one in text]).to(batch.device)
        if settings.variant == "normalised":
            return START * noise
        if settings.norm == "l2":
            noise = noise / example_norm(noise, batch.example_index, "l2")
        return START_SHARE * self.radius(clean) * noise

    def dropout(self, clean: CleanPass) -> AbstractContextManager[None]:
        """Return a context that replays the clean pass' dropout if `dropout` is "fixed"."""
        if self.settings.dropout == "fixed":
            return replayed(clean.random_state, clean.batch.device)
        return nullcontext()


@contextmanager
def without_weight_gradients(model: EncoderWithHeads) -> Iterator[None]:
    """Exclude the model's weights from differentiation in this context."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_()
