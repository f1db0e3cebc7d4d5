"""The training loop for one or several tasks, and its settings.

>>> from multitask import RunConfig, train
>>> run = train(RunConfig(tasks=("sst", "sts"), combiner="pcgrad", limit=200, epochs=1), "runs/x")
>>> run.metrics["dev"]["sts"]["pearson"], run.model.predict(["a film to love"])["sst"].labels
"""

from typing import TYPE_CHECKING, Any

from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks.own_tasks import table_tasks, task

if TYPE_CHECKING:
    from multitask.run import train

__all__ = ["Run", "RunConfig", "table_tasks", "task", "train"]


def __getattr__(name: str) -> Any:
    """Import `train`, and PyTorch with it, at its first use."""
    if name != "train":
        raise AttributeError(f"module multitask has no {name}")
    from multitask.run import train

    return train
