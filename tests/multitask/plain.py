"""Losses and PCGrad in the plain way, to compare with: one pass with its graph; D dimensions."""

import numpy as np
from tolerances import gradient_terms

from common.settings import is_users, methods


def built_in(base):
    """The methods of a base class by name, without those that tests define."""
    return {name: one for name, one in methods(base).items() if not is_users(one)}


def plain_losses(trainer, name, rows, texts=None):
    """One task's losses on some rows, and the embeddings, (B, H) a text, they were computed of."""
    split = trainer.splits[name]["train"]
    texts = trainer.model.embed(split.batch(rows)) if texts is None else texts
    targets = split.targets(rows, texts[0].device)
    outputs = trainer.model.heads[name](*texts)
    return trainer.tasks[name].compute_losses(outputs, texts, targets), texts


def step_terms(trainer):
    """Additions on the way of one number of a gradient, of any batch of the training examples."""
    tokens = max(
        sum(int(part.lengths.sum()) for part in splits["train"].tokens)
        for splits in trainer.splits.values()
    )
    return gradient_terms(trainer.model.bi_encoder.encoder.config, tokens)


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
