"""SMART in a training step: predictions are to stay where they are under adversarial noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from losses import adversarial_noise
from multitask.config import RunConfig
from multitask.model import EncoderWithHeads
from multitask.randomness import generator
from multitask.regularizers.base import Clean, Stateless, Term

# Start noise: what the public implementations draw; within a ball, a tenth of its radius.
START, START_SHARE = 1e-5, 0.1
# Of a ball where nothing else is said: a fifth of the standard deviation of MiniLM's word
# embeddings for each number; half the length of one of its words for a whole example.
RADIUS = {"inf": 0.01, "l2": 0.5}
STEP = 1e-3  # up the gradient, as the public implementations


class Smart(Stateless):
    """weight x divergence(outputs with noise, outputs) (Jiang et al., 2020, Eq. 1 and 2).

    The noise comes from `losses.adversarial_noise`; both towers of a pair have noise of their own
    and one joint gradient. With `smart_dropout` "fixed" the noisy passes drop out what the clean
    one did, so that nothing but the noise can move the outputs.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config, self.weights = config, config.smart_weight

    @property
    def radius(self) -> float:
        return self.config.smart_radius or RADIUS[self.config.smart_norm]

    @property
    def step_size(self) -> float:
        """As configured; else the public implementations', or one step to the border."""
        projected = self.config.smart_variant == "projected"
        default = self.radius if projected else STEP
        return self.config.smart_step_size or default

    def __call__(self, clean: Clean) -> Term:
        noise = self.noise(clean)
        with self.dropout(clean):
            noisy, outputs = clean.another_pass(replace(clean.batch, noise=noise))
        divergence = clean.divergence(outputs, clean.outputs)
        return Term(self.weights[clean.task.name] * divergence, [noisy])

    def noise(self, clean: Clean) -> Tensor:
        """Start noise (T, H), led up the divergence without gradients of weights."""
        config, model = self.config, clean.model
        expected = clean.outputs.detach()

        def divergence(noise: Tensor) -> Tensor:
            batch = replace(clean.batch, noise=noise)
            with self.dropout(clean):
                outputs = clean.head(clean.embed(batch))
                # The mean over all examples of the step, whatever piece these are.
                return clean.divergence(outputs, expected) * clean.part.share

        with without_weight_gradients(model):
            return adversarial_noise(
                divergence,
                self.start(clean),
                clean.batch.owner,
                variant=config.smart_variant,
                steps=config.smart_steps,
                step_size=self.step_size,
                radius=self.radius,
                norm=config.smart_norm,
            )

    def start(self, clean: Clean) -> Tensor:
        """Normal noise (T, H): an example has the same in a step, in whatever piece it comes."""
        config, batch = self.config, clean.batch
        width = clean.model.bi_encoder.word_width
        lengths = batch.lengths.view(batch.texts, -1).numpy()  # (texts, B)
        drawn = []
        for row, tokens in zip(clean.part.indices, lengths.T, strict=True):
            purpose = f"adversarial noise of {clean.task.name}"
            draw = generator(config.seed, purpose, clean.step, int(row))
            noise = torch.from_numpy(draw.standard_normal((tokens.sum(), width), "float32"))
            drawn.append((noise * self.scale(noise)).split(tokens.tolist()))
        return torch.cat([one for text in zip(*drawn, strict=True) for one in text]).to(
            batch.device
        )

    def scale(self, noise: Tensor) -> float:
        """What normal noise of an example (T, H) is multiplied by."""
        if self.config.smart_variant != "projected":
            return START
        size = float(noise.norm()) if self.config.smart_norm == "l2" else 1.0
        return START_SHARE * self.radius / size

    def dropout(self, clean: Clean) -> AbstractContextManager[None]:
        """The clean pass' dropout once more, or the next one's."""
        if self.config.smart_dropout == "fixed":
            return clean.model.dropout_stream.replay(clean.number)
        return nullcontext()


@contextmanager
def without_weight_gradients(model: EncoderWithHeads) -> Iterator[None]:
    """Passes within differentiate with regard to what they are given alone."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_()
