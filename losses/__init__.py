"""Losses as pure functions of tensors, one file per family; they do not depend on a model.

N examples have embeddings (N, H) and labels (N,), the numbers of their classes. All functions raise
ValueError for labels of another shape, which PyTorch would broadcast. A batch without terms has a
loss of 0 with a zero gradient.
"""

from losses.divergence import soft_divergence, squared_difference, symmetric_kl
from losses.lacon import instance_centered_loss, label_centered_loss, label_embedding_regularizer
from losses.npair import NPair, npair_loss
from losses.objectives import ClassObjective
from losses.pull_push import contrastive_objectives, lower_bounds
from losses.simcse import simcse_loss
from losses.smart import adversarial_noise
from losses.supcon import SupCon, supcon_loss
from losses.super_loss import SuperLoss, super_loss
from losses.triplet import ClassTriplet, triplet_loss

__all__ = [
    "ClassObjective",
    "ClassTriplet",
    "NPair",
    "SupCon",
    "SuperLoss",
    "adversarial_noise",
    "contrastive_objectives",
    "instance_centered_loss",
    "label_centered_loss",
    "label_embedding_regularizer",
    "lower_bounds",
    "npair_loss",
    "simcse_loss",
    "soft_divergence",
    "squared_difference",
    "supcon_loss",
    "super_loss",
    "symmetric_kl",
    "triplet_loss",
]
