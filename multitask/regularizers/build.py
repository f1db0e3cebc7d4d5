"""The regularisers of a configuration, built for a run."""

from __future__ import annotations

from collections.abc import Mapping

from multitask.config import RunConfig
from multitask.errors import RunError
from multitask.model import EncoderWithHeads
from multitask.regularizers.base import Running
from tasks.base import Task


def build_regularizers(
    config: RunConfig, model: EncoderWithHeads, tasks: Mapping[str, Task]
) -> dict[str, Running]:
    """Those of a configuration, by name: each acts on the tasks it has a weight for.

    Raises RunError for a task whose outputs cannot be compared, example by example.
    """
    found = {one.name: one.build(model, config.seed) for one in config.regularizers}
    for name, regularizer in found.items():
        for task in regularizer.weights:
            if tasks[task].in_batch or tasks[task].kind.divergence is None:
                expected = "a task whose outputs can be compared one by one"
                raise RunError(f"{name}: expected {expected}, found {task}")
    return found
