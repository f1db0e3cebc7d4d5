"""Losses the plain way: one pass through the encoder, its graph kept."""

from __future__ import annotations


def plain_losses(trainer, name, rows, texts=None):
    """One task's losses on some rows, and the embeddings, (B, H) a text, they were computed of."""
    split = trainer.splits[name]["train"]
    texts = trainer.model.embed(split.batch(rows)) if texts is None else texts
    targets = split.targets(rows, texts[0].device)
    outputs = trainer.model.heads[name](*texts)
    return trainer.tasks[name].losses(outputs, texts, targets), texts
