"""Layers between embeddings and a loss of classes, used only in training (SuperConText)."""

from torch import nn

PROJECTED = 512  # width of the projection (SuperConText, section IV.C)


def projection_head(kind: str, width: int) -> nn.Module:
    """Return a module from embeddings (B, width) to the inputs of the loss.

    `kind` is none, linear (one layer), or nonlinear (two layers with ReLU between them).
    """
    if kind == "none":
        return nn.Identity()
    if kind == "linear":
        return nn.Linear(width, PROJECTED, bias=False)
    return nn.Sequential(
        nn.Linear(width, width, bias=False), nn.ReLU(), nn.Linear(width, PROJECTED, bias=False)
    )
