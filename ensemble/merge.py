"""Merging of several models' predictions for one task: vote, average or greedy selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from ensemble.alignment import Aligned, aligned
from ensemble.vote import average, majority_vote
from tasks.kinds import Kind
from tasks.predictions import Scores, UserError

METHODS = ("vote", "average", "greedy")
ROUNDS = 25  # of the greedy selection


@dataclass(frozen=True)
class Merged:
    """An ensemble: the scores of each split, its dev metrics, and its members for metrics.json.

    All metrics use the same `reported_examples` of dev. These exclude the `selected_on_examples`,
    on which the ensemble or a member was selected.
    """

    splits: Mapping[str, Scores]
    metrics: Mapping[str, float]
    members: Mapping[str, Any]


def merge(tables: Mapping[str, Mapping[str, Scores]], kind: Kind, method: str, seed: int) -> Merged:
    """Merge the scores in `tables` (split -> model -> scores, with a split `dev`) into one model's.

    `vote` takes the majority of the predicted classes, or the mean of similarities (BEES, section
    4.6) and of the probabilities of several labels. `average` takes the class with the largest mean
    probability. `greedy` averages models that are selected, with replacement, by the main metric of
    their average on one half of dev.
    """
    every = {name: aligned(models, kind.predictions) for name, models in tables.items()}
    dev, names = every["dev"], list(tables["dev"])
    if dev.targets is None:
        raise UserError(f"{names[0]}: the dev examples have no labels")
    targets, seen = dev.targets, dev.selected_on
    chosen = list(range(len(names)))
    if method == "greedy":
        half = first_half(dev.ids, seed)
        seen = seen | half

        def score(scores: np.ndarray) -> float:
            return kind.measure(scores, targets[half])[kind.main_metric]

        chosen = greedy_selection(dev.values[:, half], score)
    if seen.all():
        line = f"found 0 of {len(seen)}; leave out members that are ensembles"
        raise UserError(f"dev: needs examples that selected no member, {line}")

    def metrics(predictions: np.ndarray) -> dict[str, float]:
        return kind.metrics(predictions[~seen], targets[~seen])

    splits = {name: merged(table, chosen, kind, method) for name, table in every.items()}
    found = metrics(splits["dev"].predicted(kind.predictions))
    if seen.any():
        splits["dev"] = replace(splits["dev"], selected_on=seen)
    counts = Counter(names[model] for model in chosen)
    each = zip(names, dev.predictions, strict=True)
    members = {
        "weights": {name: counts[name] for name in names if counts[name]},
        "counts": [counts[name] for name in names],
        "dev": {name: metrics(predictions) for name, predictions in each},
        "reported_examples": int((~seen).sum()),
        "selected_on_examples": int(seen.sum()),
    }
    return Merged(splits, found, members)


def merged(table: Aligned, chosen: list[int], kind: Kind, method: str) -> Scores:
    """Merge one split's scores of the chosen models."""
    scores = average(table.values[chosen]).astype(np.float32)
    if method == "vote" and kind.classes is not None:
        predictions = majority_vote(table.predictions, table.values)
    else:
        predictions = kind.predictions(scores)
    return Scores(table.ids, scores, table.targets, predictions)


def greedy_selection(
    scores: np.ndarray, score: Callable[[np.ndarray], float], rounds: int = ROUNDS
) -> list[int]:
    """Return the models of (M, N, ...) whose mean has the best score, with repetitions.

    Selection starts with the best single model and adds, with replacement, the model that gives the
    best score (Caruana et al., 2004, sections 2 and 2.2), the first in a tie. The best ensemble of
    all rounds is returned, the smallest in a tie; it never scores below its best member.
    """
    chosen: list[int] = []
    values: list[float] = []
    total = np.zeros(scores.shape[1:])
    for size in range(1, rounds + 1):
        found = [score((total + one) / size) for one in scores.astype(np.float64)]
        chosen.append(int(np.argmax(found)))
        values.append(max(found))
        total = total + scores[chosen[-1]]
    return chosen[: int(np.argmax(values)) + 1]


def first_half(ids: np.ndarray, seed: int) -> np.ndarray:
    """Mark (N,) one half of the examples, drawn by their ids, whatever their order is."""
    order = sorted(range(len(ids)), key=lambda i: (crc32(f"{seed} {ids[i]}".encode()), ids[i]))
    return np.isin(np.arange(len(ids)), order[: (len(ids) + 1) // 2])
