"""What losses refuse: labels of another shape, which would be broadcast."""

import pytest
from loss_cases import drawn

from losses import (
    contrastive_objectives,
    instance_centered_loss,
    label_centered_loss,
    npair_loss,
    pair_contrastive_loss,
    simcse_loss,
    supcon_loss,
    super_loss,
    triplet_loss,
)

X, Y = drawn([0, 0, 1, 1])


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
        (lambda y: pair_contrastive_loss(X, X, y), "alike"),
        (lambda y: simcse_loss(X, X, groups=y), "groups"),
    ],
)
def test_labels_of_another_shape_are_refused_by_every_loss(call, line):
    call(Y)
    for labels in (Y[:, None], Y[:3], Y[0]):
        with pytest.raises(ValueError, match=rf"^{line}: expected shape \(4,\), found \("):
            call(labels)
