"""Merging of several models' predictions for one task: vote, average or greedy selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from zlib import crc32

import numpy as np

from ensemble.alignment import Aligned, aligned
from ensemble.vote import average, majority_vote
from tasks.predictions import Scores, UserError

METHODS = ("vote", "average", "greedy")


class Scoring(Protocol):
    """The interface of a task that an ensemble needs: see `tasks.kinds.Kind`."""

    @property
    def predictions(self) -> Callable[[np.ndarray], np.ndarray]: ...
    @property
    def metrics(self) -> Callable[[np.ndarray, np.ndarray], dict[str, float]]: ...
    @property
    def main_metric(self) -> str: ...


@dataclass(frozen=True)
class Merged:
    """An ensemble: the weight of each member, the scores of each split, and the metrics.

    `metrics` and the `members`' individual metrics use the same `reported` dev examples. These
    exclude the `selected_on` examples, on which the ensemble or a member was selected.
    """

    weights: Mapping[str, int]
    splits: Mapping[str, Scores]
    metrics: dict[str, float]
    members: Mapping[str, dict[str, float]]
    reported: int
    selected_on: int = 0


def merge(
    tables: Mapping[str, Mapping[str, Scores]], kind: Scoring, method: str, seed: int
) -> Merged:
    """Merge the scores in `tables` (split -> model -> scores, with a split `dev`) into one model's.

    `vote` takes the majority of the predicted classes, or the mean of similarities (BEES, section
    4.6) and of the probabilities of several labels. `average` takes the class with the largest mean
    probability. `greedy` averages models that are selected, with replacement, by the main metric of
    their average on one half of dev.
    """
    every = {name: aligned(models, kind.predictions) for name, models in tables.items()}
    dev = every["dev"]
    if dev.targets is None:
        raise UserError(f"{dev.names[0]}: expected labels with the dev scores, found none")
    targets, seen = dev.targets, dev.selected_on
    chosen = list(range(len(dev.names)))
    if method == "greedy":
        inside, _ = halves(dev.ids, seed)
        seen = seen | np.isin(np.arange(len(seen)), inside)

        def score(scores: np.ndarray) -> float:
            return kind.metrics(kind.predictions(scores), targets[inside])[kind.main_metric]

        chosen = greedy_selection(dev.values[:, inside], score)
    if seen.all():
        line = f"found 0 of {len(seen)}; leave out members that are ensembles"
        raise UserError(f"dev: expected examples that selected no member, {line}")
    splits = {name: merged(table, chosen, kind, method) for name, table in every.items()}
    if seen.any():
        splits["dev"] = replace(splits["dev"], selected_on=seen)
    counts = Counter(dev.names[model] for model in chosen)

    def metrics(predictions: np.ndarray | None) -> dict[str, float]:
        assert predictions is not None
        return kind.metrics(predictions[~seen], targets[~seen])

    return Merged(
        weights={name: counts[name] for name in dev.names if counts[name]},
        splits=splits,
        metrics=metrics(splits["dev"].predictions),
        members={n: metrics(one) for n, one in zip(dev.names, dev.predictions, strict=True)},
        reported=int((~seen).sum()),
        selected_on=int(seen.sum()),
    )


def merged(table: Aligned, chosen: list[int], kind: Scoring, method: str) -> Scores:
    """Merge one split's scores of the chosen models."""
    scores = average(table.values[chosen]).astype(np.float32)
    if method == "vote" and scores.ndim == 2 and table.predictions.ndim == 2:
        predictions = majority_vote(table.predictions, table.values)
    else:
        predictions = kind.predictions(scores)
    return Scores(table.ids, scores, table.targets, predictions)


ROUNDS = 25


def greedy_selection(
    scores: np.ndarray, score: Callable[[np.ndarray], float], rounds: int = ROUNDS
) -> list[int]:
    """Return the models of (M, N, ...) whose mean has the best score, with repetitions.

    Selection starts with the best single model and adds, with replacement, the model that gives the
    best score (Caruana et al., 2004, sections 2 and 2.2), the first in a tie. The best ensemble of
    all rounds is returned, the smallest in a tie; it never scores below its best member.
    """
    chosen: list[int] = []
    best: list[int] = []
    best_score = -np.inf
    total = np.zeros(scores.shape[1:])
    for _ in range(rounds):
        values = [score((total + one) / (len(chosen) + 1)) for one in scores.astype(np.float64)]
        winner = int(np.argmax(values))
        chosen.append(winner)
        total = total + scores[winner]
        if values[winner] > best_score:
            best, best_score = list(chosen), values[winner]
    return best


def halves(ids: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the examples in halves by their ids, independent of their order; return the rows."""
    order = np.array(
        sorted(range(len(ids)), key=lambda row: (crc32(f"{seed} {ids[row]}".encode()), ids[row]))
    )
    middle = (len(ids) + 1) // 2
    return np.sort(order[:middle]), np.sort(order[middle:])
