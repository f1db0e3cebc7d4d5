"""The training loop for one or several tasks, and its settings.

>>> from multitask import RunConfig, train
>>> run = train(RunConfig(tasks=("sst", "sts"), combiner="pcgrad", limit=200, epochs=1), "runs/x")
>>> run.metrics["dev"]["sts"]["pearson"], run.model.predict(["a film to love"])["sst"].labels
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multitask.callbacks import STOP
    from multitask.settings.config import RunConfig
    from multitask.training import Run, train
    from tasks.own_tasks import task
    from tasks.table_tasks import table_tasks

__all__ = [
    "STOP",
    "Run",
    "RunConfig",
    "table_tasks",
    "task",
    "train",
]
PLACES = {
    "RunConfig": "multitask.settings.config",
    "Run": "multitask.training",
    "train": "multitask.training",
    "STOP": "multitask.callbacks",
    "task": "tasks.own_tasks",
    "table_tasks": "tasks.table_tasks",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, so that PyTorch is loaded only for training."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'multitask' has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)
