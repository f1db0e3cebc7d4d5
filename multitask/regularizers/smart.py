"""SMART in a training step: predictions are to stay where they are under adversarial noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from losses import adversarial_noise
from multitask.config import RunConfig
from multitask.model import MultiTaskModel
from multitask.randomness import generator
from multitask.regularizers.base import Clean, Stateless, Term

# Start noise: what the public implementations draw; within a ball, a tenth of its radius.
START, START_SHARE = 1e-5, 0.1
STEP = 1e-3  # up the gradient, as the public implementations


class Smart(Stateless):
    """weight x divergence(outputs with noise, outputs) (Jiang et al., 2020, Eq. 1 and 2).

    The noise comes from `losses.adversarial_noise`; both towers of a pair have noise of their own
    and one joint gradient. With `smart_dropout` "fixed" the noisy passes drop out what the clean
    one did, so that nothing but the noise can move the outputs.
    """

    def __init__(self, config: RunConfig, rank: int = 0) -> None:
        self.config, self.weights, self.rank = config, config.smart_weight, rank

    @property
    def step_size(self) -> float:
        """As configured; else the public implementations', or one step to the border."""
        projected = self.config.smart_variant == "projected"
        default = self.config.smart_radius if projected else STEP
        return self.config.smart_step_size or default

    def __call__(self, clean: Clean) -> Term:
        batch = clean.batch.to(clean.model.bi_encoder.device)
        clean = replace(clean, batch=batch)
        noise = self.noise(clean)
        with self.dropout(clean):
            noisy, outputs = clean.another_pass(replace(batch, noise=noise))
        divergence = clean.divergence(outputs, clean.outputs)
        return Term(self.weights[clean.task.name] * divergence, [noisy])

    def noise(self, clean: Clean) -> Tensor:
        """The noise (T, H) to which the outputs react most, found without gradients of weights."""
        config, model = self.config, clean.model
        expected = clean.outputs.detach()

        def divergence(noise: Tensor) -> Tensor:
            batch = replace(clean.batch, noise=noise)
            with self.dropout(clean):
                texts = batch.split(model.embed(batch, clean.precision))
                return clean.divergence(clean.head(texts), expected)

        with without_weight_gradients(model):
            return adversarial_noise(
                divergence,
                self.start(clean),
                clean.batch.owner,
                variant=config.smart_variant,
                steps=config.smart_steps,
                step_size=self.step_size,
                radius=config.smart_radius,
                norm=config.smart_norm,
            )

    def start(self, clean: Clean) -> Tensor:
        """Normal noise (T, H), the same again for the same pass of a run."""
        config = self.config
        projected = config.smart_variant == "projected"
        scale = START_SHARE * config.smart_radius if projected else START
        draw = generator(config.seed, "adversarial noise", clean.number, self.rank)
        shape = (clean.batch.tokens, clean.model.bi_encoder.width)
        noise = torch.from_numpy(draw.standard_normal(shape, "float32")) * scale
        return noise.to(clean.batch.device)

    def dropout(self, clean: Clean) -> AbstractContextManager[None]:
        """The clean pass' dropout once more, or the next one's."""
        if self.config.smart_dropout == "fixed":
            return clean.model.dropout_stream.replay(clean.number)
        return nullcontext()


@contextmanager
def without_weight_gradients(model: MultiTaskModel) -> Iterator[None]:
    """Passes within differentiate with regard to what they are given alone."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_()
