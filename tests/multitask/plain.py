"""Losses the plain way: one pass through the encoder, its graph kept."""

from __future__ import annotations


def plain_losses(trainer, name, rows, embeddings=None):
    """One task's losses on some rows, and the embeddings (S, H) they were computed from."""
    split = trainer.splits[name]["train"]
    batch = split.batch(rows)
    embeddings = trainer.model.embed(batch, "fp32") if embeddings is None else embeddings
    targets = split.targets(rows, embeddings.device)
    texts = batch.split(embeddings)
    outputs = trainer.model.heads[name](*texts)
    return trainer.tasks[name].losses(outputs, texts, targets), embeddings
