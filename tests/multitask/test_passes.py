"""Losses over a batch: the same gradient in any pieces, of which none keeps its graph."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from plain import step_terms
from tolerances import assert_near, assert_near_in_norm

from multitask.passes import seed_step

pytestmark = pytest.mark.numeric


TEMPERATURE = 0.05  # of SimCSE


def magnified(trainer):
    """By how much SimCSE's probabilities magnify the relative errors of embeddings.

    Of an error in H directions a cosine meets one, and it is divided by the temperature.
    """
    return 1 / (TEMPERATURE * trainer.model.bi_encoder.width**0.5)


def encoder_gradient(model):
    return torch.cat(
        [p.grad.to_dense().flatten() for p in model.bi_encoder.parameters() if p.grad is not None]
    )


def pairs(make_trainer, name="run", dropout=False, **changes):
    """A trainer whose loss compares the pairs of a batch."""
    settings = {"mode": "pretrain", "objective": "pairs", "tasks": ("sts",), "combiner": "sum"}
    return make_trainer(name, sampling="round-robin", dropout=dropout, **settings, **changes)


@pytest.mark.parametrize("micro_batch", [1, 3, 8])
def test_a_loss_over_the_batch_has_the_same_gradient_in_any_pieces(make_trainer, micro_batch):
    """In-batch negatives: the loss does not decompose, yet no more than a piece keeps its graph."""
    found = {}
    for size in (None, micro_batch):
        trainer = pairs(make_trainer, f"{size}", micro_batch=size)
        result = trainer.gradient({"pairs": [np.arange(10)]})
        found[size] = encoder_gradient(trainer.model), result.losses
    (one, loss), (other, same_loss) = found.values()
    terms, scale = step_terms(trainer), magnified(trainer)
    assert_near_in_norm(other, one, terms, scale)
    assert_near(same_loss, loss, terms, scale * np.abs(loss).max())


def test_an_in_batch_loss_is_computed_per_batch(make_trainer):
    trainer = pairs(make_trainer)
    rows = [np.arange(6), np.arange(6, 8)]

    def loss(*batches):
        trainer.model.zero_grad(set_to_none=True)
        return trainer.gradient({"pairs": list(batches)}).losses[0]

    each, both = [loss(several) for several in rows], loss(*rows)
    total = each[0] + each[1]
    assert_near(both, total, step_terms(trainer), magnified(trainer) * total)


def test_dropout_is_replayed_in_the_second_forward_pass(make_trainer):
    """With the same masks the gradient is that of the losses; with others it would be near it."""
    trainer = pairs(make_trainer, dropout=True, micro_batch=4)
    trainer.model.train()
    trainer.gradient({"pairs": [np.arange(12)]})
    cached = encoder_gradient(trainer.model)
    trainer.model.zero_grad(set_to_none=True)
    seed_step(trainer.config.seed, 0, 0)
    split = trainer.splits["pairs"]["train"]
    parts = [trainer.model.embed(split.batch(np.arange(n, n + 4))) for n in range(0, 12, 4)]
    texts = tuple(torch.cat(side) for side in zip(*parts, strict=True))
    targets = split.targets(np.arange(12), texts[0].device)
    trainer.tasks["pairs"].compute_losses(texts, texts, targets)["pairs"].backward()
    plain = encoder_gradient(trainer.model)
    assert_near_in_norm(cached, plain, step_terms(trainer), magnified(trainer))


def drawn():
    return F.dropout(torch.ones(50), 0.5)


def test_draws_depend_on_seed_step_and_process_only():
    found = []
    for numbers in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, 0)):
        seed_step(*numbers)
        found.append(drawn())
    assert torch.equal(found[0], found[-1])
    assert not any(torch.equal(found[0], other) for other in found[1:-1])
