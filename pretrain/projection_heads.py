"""Layers between embeddings and an objective of classes, in training only (SuperConText).

No torch is imported at module level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.errors import UserError
from common.settings import Settings

if TYPE_CHECKING:
    from torch import nn


class ProjectionHead(Settings):
    """A layer between embeddings and an objective of classes, in training only."""

    def build(self, width: int) -> nn.Module:
        """A module from embeddings (B, H) to what the objective sees."""
        raise UserError(f"projection head {self.name}: expected build")


PROJECTED = 512  # width of the projection (SuperConText, section IV.C)


class NoProjection(ProjectionHead, name="none"):
    """The embeddings themselves."""

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
