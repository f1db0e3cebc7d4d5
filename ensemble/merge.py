"""One task's predictions merged from several models': by vote, average or greedy selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ensemble.select import greedy_selection, halves, selected
from ensemble.tables import aligned
from ensemble.vote import majority_vote
from tasks.predictions import PredictionError, Scores

METHODS = ("vote", "average", "greedy")
Metrics = dict[str, float]


class Scoring(Protocol):
    """What an ensemble wants to know of a task: see `tasks.base.Kind`."""

    @property
    def predictions(self) -> Callable[[np.ndarray], np.ndarray]: ...
    @property
    def metrics(self) -> Callable[[np.ndarray, np.ndarray], Metrics]: ...
    @property
    def main_metric(self) -> str: ...


@dataclass(frozen=True)
class Merged:
    """An ensemble: how often each member counts, what it says of each split, how it scores.

    `metrics` and those of its `members` by themselves are of the same `reported` dev examples; with
    greedy selection, of the half that it was not `selected_on`.
    """

    weights: Mapping[str, int]
    splits: Mapping[str, Scores]
    metrics: Metrics
    members: Mapping[str, Metrics]
    reported: int
    selected_on: int = 0


def merge(
    tables: Mapping[str, Mapping[str, Scores]], kind: Scoring, method: str, seed: int
) -> Merged:
    """Splits -> models -> scores, `dev` among the splits, become one model's.

    `vote` takes the majority of the predicted classes, and the mean of similarities (BEES, section
    4.6); `average` the class of the largest mean probability; `greedy` a selection of the models,
    with replacement, chosen by the main metric of their average on one half of dev.
    """
    dev = aligned(tables["dev"])
    if dev.targets is None:
        raise PredictionError(f"{dev.names[0]}: expected labels beside the dev scores, found none")
    targets, everything = dev.targets, np.arange(len(dev.ids))
    chosen, reported = list(range(len(dev.names))), everything
    if method == "greedy":
        inside, reported = halves(dev.ids, seed)
        if not len(reported):
            raise PredictionError(f"expected two dev examples or more, found {len(dev.ids)}")

        def score(scores: np.ndarray) -> float:
            return kind.metrics(kind.predictions(scores), targets[inside])[kind.main_metric]

        chosen = greedy_selection(dev.values[:, inside], score)
    splits = {}
    for name, several in tables.items():
        table = aligned(several)
        scores = selected(table.values, chosen).astype(np.float32)
        if method == "vote" and scores.ndim == 2:
            votes = [kind.predictions(one) for one in table.values]
            predictions = majority_vote(votes, table.values)
        else:
            predictions = kind.predictions(scores)
        splits[name] = Scores(table.ids, scores, table.targets, predictions)
    counts = Counter(dev.names[model] for model in chosen)
    merged = splits["dev"].predictions
    assert merged is not None

    def metrics(predictions: np.ndarray) -> Metrics:
        return kind.metrics(predictions[reported], targets[reported])

    return Merged(
        weights={name: counts[name] for name in dev.names if counts[name]},
        splits=splits,
        metrics=metrics(merged),
        members={
            name: metrics(kind.predictions(values))
            for name, values in zip(dev.names, dev.values, strict=True)
        },
        reported=len(reported),
        selected_on=len(everything) - len(reported),
    )
