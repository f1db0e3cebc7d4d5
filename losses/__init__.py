"""Losses as pure functions of tensors, one paper a file; no model is ever seen here."""

from losses.pairs import pair_contrastive_loss

__all__ = ["pair_contrastive_loss"]
