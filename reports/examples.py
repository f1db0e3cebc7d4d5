"""Dev examples on which systems differ most, or on which a lone one errs most, with their texts."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import shorten

import numpy as np

from common.errors import UserError
from common.files import digest
from reports.scores import TaskScores
from reports.systems import System
from reports.tables import Section
from tasks import data_folder
from tasks.base import Task

SHOWN = 10  # examples per task
WIDTH = 80  # of a text in the terminal


def example_section(one: TaskScores, systems: Sequence[System]) -> Section:
    """Return the examples that systems answer differently from the first, or a lone one wrongly.

    They are sorted by the distance of scores, of the first seed of each system; right answers are
    bold. There are none if the data of the runs cannot be found or has changed.
    """
    names, classes = one.systems, one.task.kind.classes
    cells = [one.cells(name)[0] for name in names]
    scores, answers = ([by[cell] for cell in cells] for by in (one.values, one.predictions))
    if len(names) == 1:
        certain = one.targets if classes is None else np.eye(classes)[one.targets]
        scores, answers = [certain, *scores], [one.targets, *answers]
    gaps = [np.abs(other.astype(np.float64) - scores[0]) for other in scores[1:]]
    distance = np.max([gap.reshape(len(one.ids), -1).sum(1) for gap in gaps], axis=0)
    texts = dev_texts([system for system in systems if system.name in names], one.task)
    rows: list[list[str]] = []
    right = set()
    for row in np.argsort(-distance, kind="stable"):
        label, *several = (shown_answer(one.task, found[row]) for found in (one.targets, *answers))
        text = texts.get(str(one.ids[row]))
        # Probabilities may differ for the same class.
        if text is not None and len({*several}) > 1 and len(rows) < SHOWN:
            shown = several[-len(names) :]
            right |= {(len(rows), place) for place, found in enumerate(shown, 2) if found == label}
            rows.append([text, label, *shown])
    title = "Disagreements on" if len(names) > 1 else "Largest errors on"
    table = ["example", "label", *names], rows
    return Section(f"{title} {one.task.name}", table, frozenset(right), numbers=False)


def first_examples(one: TaskScores, systems: Sequence[System], count: int) -> list[list[str]]:
    """Return task, text, label and prediction of the first dev examples, short ones if any."""
    texts = dev_texts(systems, one.task)
    (predictions,) = one.predictions.values()
    shown = [texts.get(str(name), "").replace("\n", " / ") for name in one.ids]
    rows = sorted(filter(shown.__getitem__, range(len(shown))), key=lambda r: len(shown[r]) > WIDTH)
    return [
        [
            one.task.name,
            shorten(shown[row], WIDTH, placeholder=" ..."),
            *(shown_answer(one.task, found[row]) for found in (one.targets, predictions)),
        ]
        for row in rows[:count]
    ]


def dev_texts(systems: Sequence[System], task: Task) -> dict[str, str]:
    """Return the texts of dev by id, from the first run that records its data.

    There are none if they are not here, or if their file has changed since a run began.
    """
    runs = [run for one in systems for run in one.runs]
    known = [run.settings["data"] for run in runs if run.settings.get("data")]
    if not known:  # merged runs record none
        return {}
    folder = data_folder(known[0])
    key, file = f"{task.name} dev", Path(task.source.where(folder, "dev"))
    now = digest(file) if file.is_file() else None
    if any(run.read("data.json").get(key, now) != now for run in runs):
        return {}
    with suppress(UserError):
        examples = task.read(folder, "dev")
        return {
            name: "\n".join(text) for name, *text in zip(examples.ids, *examples.texts, strict=True)
        }
    return {}


def shown_answer(task: Task, value: np.ndarray) -> str:
    """Return a label or a prediction as text: a class, several labels, or a number."""
    names = task.kind.names
    if task.kind.classes is not None:
        return names[int(value)]
    if task.kind.labels is not None:
        return ", ".join(n for n, has in zip(names, value, strict=True) if has) or "none"
    return f"{float(task.output.show(value) if task.output else value):z.2f}"
