"""Texts that the page offers: dev examples of a run's tasks, or built-in ones."""

from __future__ import annotations

from collections.abc import Mapping

from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import dev_if_here

SHOWN = 3  # per task
LONGEST = 300  # characters of an example
BUILT_IN = {
    1: [["a film to love"], ["too long , and never funny"], ["the story takes place in paris"]],
    2: [
        ["how do i learn to swim ?", "what is the best way to learn swimming ?"],
        ["a cat sleeps on a chair", "a dog runs through a park"],
        ["a man plays a guitar", "a man is playing an instrument"],
    ],
}


def examples_of(
    config: RunConfig, tasks: Mapping[str, Task], of_dev: bool = True
) -> dict[str, list[list[str]]]:
    """Return a few texts by task: dev examples, or built-in ones if the data is not here.

    Without `of_dev`, all are built-in ones.
    """
    return {
        name: (dev_texts(config, task) if of_dev else []) or BUILT_IN[task.texts]
        for name, task in tasks.items()
    }


def dev_texts(config: RunConfig, task: Task) -> list[list[str]]:
    """Return texts drawn from the dev examples of a task; none if they cannot be read."""
    if (examples := dev_if_here(task, config.data)) is None:
        return []
    rows = zip(*examples.sample(10 * SHOWN).texts, strict=True)
    short = [list(row) for row in rows if max(map(len, row)) <= LONGEST]
    return [row for row in short if all(text.strip() for text in row)][:SHOWN]
