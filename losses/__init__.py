"""Losses as pure functions of tensors, one paper a file; no model is ever seen here."""

from losses.divergence import squared_difference, symmetric_kl
from losses.pairs import pair_contrastive_loss
from losses.pull_push import contrastive_objectives, ideal_points
from losses.simcse import simcse_loss, triplet_margin_loss
from losses.smart import adversarial_noise
from losses.supcon import supcon_loss

__all__ = [
    "adversarial_noise",
    "contrastive_objectives",
    "ideal_points",
    "pair_contrastive_loss",
    "simcse_loss",
    "squared_difference",
    "supcon_loss",
    "symmetric_kl",
    "triplet_margin_loss",
]
