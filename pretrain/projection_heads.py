"""Layers between embeddings and a contrastive loss, used only in training (SuperConText)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.errors import UserError
from common.settings import Settings

if TYPE_CHECKING:
    from torch import nn


class ProjectionHead(Settings):
    """A layer between embeddings and the loss of a class objective, used only in training."""

    def build(self, width: int) -> nn.Module:
        """Return a module from embeddings (B, H) to the inputs of the loss."""
        raise UserError(f"projection head {self.name}: expected a method build, found none")


PROJECTED = 512  # width of the projection (SuperConText, section IV.C)


class NoProjection(ProjectionHead, name="none"):
    """No layer: the loss takes the embeddings."""

    def build(self, width: int) -> nn.Module:
        from torch import nn

        return nn.Identity()


class LinearProjection(ProjectionHead, name="linear"):
    """One linear layer."""

    def build(self, width: int) -> nn.Module:
        from torch import nn

        return nn.Linear(width, PROJECTED, bias=False)


class NonlinearProjection(ProjectionHead, name="nonlinear"):
    """Two linear layers with ReLU between them."""

    def build(self, width: int) -> nn.Module:
        from torch import nn

        return nn.Sequential(
            nn.Linear(width, width, bias=False), nn.ReLU(), nn.Linear(width, PROJECTED, bias=False)
        )
