"""Terms that a task's loss gets beside its own: one file a method."""

from __future__ import annotations

from collections.abc import Mapping

from multitask.config import RunConfig
from multitask.errors import RunError
from multitask.model import EncoderWithHeads
from multitask.regularizers.base import Clean, Regularizer, Term
from multitask.regularizers.proximal import Proximal
from multitask.regularizers.r_drop import RDrop
from multitask.regularizers.smart import Smart
from tasks.base import Task

__all__ = ["Clean", "Proximal", "RDrop", "Regularizer", "Smart", "Term", "build_regularizers"]


def build_regularizers(
    config: RunConfig, model: EncoderWithHeads, tasks: Mapping[str, Task]
) -> dict[str, Regularizer]:
    """Those of a configuration, by name: each acts on the tasks it has a weight for.

    Raises RunError for a task whose outputs cannot be compared, example by example.
    """
    found: dict[str, Regularizer] = {}
    if config.smart_weight:
        found["smart"] = Smart(config)
    if config.r_drop_weight:
        found["r-drop"] = RDrop(config.r_drop_weight)
    if config.proximal_weight:
        found["proximal"] = Proximal(config.proximal_weight, config.proximal_momentum, model)
    for name, regularizer in found.items():
        for task in regularizer.weights:
            if tasks[task].in_batch or tasks[task].kind.divergence is None:
                expected = "a task whose outputs can be compared one by one"
                raise RunError(f"{name}: expected {expected}, found {task}")
    return found
