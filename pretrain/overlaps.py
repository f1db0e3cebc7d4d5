"""What the text of a pre-training run shares with data that it must not have seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from multitask.config import RunConfig
from pretrain.texts import overlap
from tasks import CS224N, data_folder
from tasks.base import Task
from tasks.readers import limit_of
from tasks.text_files import DataError

if TYPE_CHECKING:
    from pretrain.objectives import PretrainObjective


def overlap_lines(
    objective: PretrainObjective, config: RunConfig, tasks: Mapping[str, Task]
) -> Iterator[str]:
    """How much dev and test text of each task is among the training text, a line for each."""
    folder = data_folder(config.data)
    if objective.file is not None and config.data == "sample":
        yield "dev is STS of the bundled sample, from templates: it judges little"
    examples = [
        task.read(folder, "train", limit_of(config.limit, task.name)) for task in tasks.values()
    ]
    texts = tuple(column for some in examples for column in some.texts)
    # Of pre-training on classes also its own tasks' dev and test, as their files have them.
    own = config.tasks if objective.of_classes else ()
    for name in dict.fromkeys((*CS224N, *own)):
        try:
            (shared,) = overlap(texts, folder, [name], config.own_tasks).values()
        except DataError as error:
            yield f"overlap with {name}: unknown ({error})"
            continue
        found = ", ".join(f"{count:,} of {split}" for split, count in shared.items())
        yield f"sentences of {name} that the training text holds: {found}"
