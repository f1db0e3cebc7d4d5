"""PCGrad without its Gram matrix, for the tests."""

from __future__ import annotations

import numpy as np


def project_explicitly(gradients, order):
    """PCGrad as the paper writes it, in D dimensions."""
    projected = []
    for i, others in enumerate(order):
        p = gradients[i].copy()
        for j in others:
            dot = p @ gradients[j]
            if dot < 0:
                p -= dot / (gradients[j] @ gradients[j]) * gradients[j]
        projected.append(p)
    return np.array(projected)
