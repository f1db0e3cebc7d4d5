"""PyTorch, imported at its first use, so that `--help` and wrong flags answer at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
else:

    class Later:
        """A module that is imported when an attribute of it is first used."""

        def __init__(self, name: str) -> None:
            self.name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self.name), attribute)

    torch, nn, F = Later("torch"), Later("torch.nn"), Later("torch.nn.functional")
    Tensor = Any

__all__ = ["F", "Tensor", "nn", "torch"]
