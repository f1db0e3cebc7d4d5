"""The training loop for one or several tasks, and its settings.

>>> from multitask import RunConfig, train
>>> run = train(RunConfig(tasks=("sst", "sts"), combiner="pcgrad", limit=200, epochs=1), "runs/x")
>>> run.metrics["dev"]["sts"]["pearson"], run.model.predict(["a film to love"])["sst"].labels
"""

from multitask.runs import Run, train
from multitask.settings.config import RunConfig
from tasks.own_tasks import table_tasks, task

__all__ = [
    "Run",
    "RunConfig",
    "table_tasks",
    "task",
    "train",
]
