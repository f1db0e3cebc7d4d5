"""Every loss: finite in float32, also for incomplete batches; labels of another shape refused."""

from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from loss_cases import drawn, every_batch

from losses import (
    contrastive_objectives,
    instance_centered_loss,
    label_centered_loss,
    label_embedding_regularizer,
    npair_loss,
    simcse_loss,
    supcon_loss,
    super_loss,
    triplet_loss,
)
from losses.super_loss import Variant

X, Y = drawn([0, 0, 1, 1])


def losses(x, y, temperature):
    """Every loss of texts and their classes."""
    unit, anchors = F.normalize(x, dim=1), x.new_ones(8, x.shape[1]).cumsum(0) + x.sum(0)
    yield supcon_loss(x, y, temperature)
    yield from contrastive_objectives(unit, y, temperature)
    yield from (super_loss(unit, y, temperature, variant) for variant in get_args(Variant))
    yield instance_centered_loss(x, anchors, y, temperature, 2)
    yield label_centered_loss(x, anchors, y, temperature)
    yield label_embedding_regularizer(anchors)
    yield triplet_loss(x, y, 0.2)
    yield from (npair_loss(x, y, normalised) for normalised in (True, False))
    yield simcse_loss(x, x.detach().flip(0), temperature, groups=y)


@pytest.mark.numeric
@every_batch
@pytest.mark.parametrize("temperature", [0.005, 0.05, 1.0])
@pytest.mark.parametrize("alike", [False, True])
def test_losses_and_gradients_are_finite_in_float32(labels, temperature, alike):
    x, y = drawn(labels)
    x = (x[:1].expand_as(x) if alike else x).float().clone().requires_grad_()
    for loss in losses(x, y, temperature):
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda y: supcon_loss(X, y, 0.1), "labels"),
        (lambda y: super_loss(X, y, 0.1), "labels"),
        (lambda y: triplet_loss(X, y, 0.1), "labels"),
        (lambda y: npair_loss(X, y, True), "labels"),
        (lambda y: contrastive_objectives(X, y, 0.1), "labels"),
        (lambda y: label_centered_loss(X, X[:2], y, 0.1), "labels"),
        (lambda y: instance_centered_loss(X, X[:2], y, 0.1), "labels"),
        (lambda y: simcse_loss(X, X, groups=y), "groups"),
    ],
)
def test_labels_of_another_shape_which_would_be_broadcast_are_refused(call, line):
    call(Y)
    for labels in (Y[:, None], Y[:3], Y[0]):
        with pytest.raises(ValueError, match=rf"^{line}: expected shape \(4,\), found \("):
            call(labels)
