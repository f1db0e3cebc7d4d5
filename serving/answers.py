"""Answers of the server in JSON: predictions, embeddings, and what the page shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from serving.card import scores, settings
from serving.empty_texts import REASON, is_empty
from serving.examples import examples_of
from serving.model import MultiTaskModel
from serving.prediction import Prediction
from tasks.base import Task

TITLES = {"sst": "Sentiment", "qqp": "Paraphrase", "sts": "Similarity"}


@dataclass(frozen=True)
class ServedRun:
    """The name of the served run and its `metrics.json`, which is empty without one."""

    name: str = "a run"
    metrics: Mapping[str, Any] = field(default_factory=dict)


def about(model: MultiTaskModel, run: ServedRun, dev_examples: bool) -> dict[str, Any]:
    """Return what the page shows: the run and its card, and the tasks with examples."""
    examples = examples_of(model.config, model.tasks_by_name, dev_examples)
    tasks = [
        {
            "name": name,
            "title": TITLES.get(name, name),
            "texts": task.texts,
            "scale": scale(task),
            "examples": examples[name],
        }
        for name, task in model.tasks_by_name.items()
    ]
    encoder = Path(model.config.encoder).name
    return {
        "run": run.name,
        "settings": [
            ["encoder", encoder],
            ["tasks", " ".join(model.tasks)],
            *(row for row in settings(model) if row[1] != str(None)),
        ],
        "scores": scores(run.metrics) if "dev" in run.metrics else [],
        "tasks": tasks,
        "max_tokens": model.model.bi_encoder.tokenizer.max_tokens,
    }


def scale(task: Task) -> list[float] | None:
    """Return the smallest and largest similarity as the task's files show them."""
    if task.output is None or task.output.scale is None:
        return None
    return [float(task.output.show(end)) for end in task.output.scale]


def answer(task: Task, found: Prediction, row: int) -> dict[str, Any]:
    """Return one prediction: label, value, the scale of similarities, the shares of classes.

    `cut` says that a text is longer than the limit, and that only a part of it was read.
    For an empty text that the task reads, label and value are None, and `reason` says why.
    """
    if found.empty[row]:
        nothing: dict[str, Any] = {"label": None, "value": None, "classes": [], "cut": False}
        return {**nothing, "scale": scale(task), "reason": REASON}
    shares = [] if found.probabilities is None else found.probabilities[row].tolist()
    classes = [{"name": n, "share": s} for n, s in zip(found.class_names, shares, strict=True)]
    return {
        "label": found.labels[row],
        "value": found.values[row].tolist(),  # one per label of a task with several labels
        "scale": scale(task),
        "classes": classes,
        "cut": bool(found.cut[row]),
        "reason": None,
    }


def embedding_answer(texts: list[str], vectors: np.ndarray, cut: np.ndarray) -> dict[str, Any]:
    """Return embeddings (n, H), null for empty texts, and which texts were cut to the limit."""
    rows = zip(texts, vectors.tolist(), strict=True)
    return {
        "embeddings": [None if is_empty(text) else vector for text, vector in rows],
        "cut": cut.tolist(),
    }
