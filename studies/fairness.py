"""Conditions of a fair test of a claim: what was learnt, and reasons that settings give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from multitask.settings.config import RunConfig
from studies.claims import Pairs
from studies.results import Cell, Results
from studies.tuning import Search, Tuned, points_tried, rates_tried

CHANCE = 0.05  # of Matthews' correlation
# Accuracy of always saying the most frequent class of the files whose figures are compared: dev of
# SST, QQP and CFIMDB, GLUE's dev files, the test files of the others. A task without an entry
# never counts as learnt.
MAJORITY = {
    "sst": 0.2625,
    "qqp": 0.6203,
    "sst2": 0.509,
    "qnli": 0.505,
    "mrpc": 0.708,
    "rte": 0.527,
    "cola": 0.689,
    "trec": 0.276,
    "mnli": 0.354,
    "cfimdb": 0.502,
    "imdb": 0.5,
    "yelp2": 0.5,
    "yelp5": 0.2,
    "amazon2": 0.5,
    "amazon5": 0.2,
}


def exceeds(figures: Collection[float], share: float) -> bool:
    """Return whether a mean is above `share` by two standard errors; by anything for one figure."""
    if not figures:
        return False
    error = stdev(figures) / sqrt(len(figures)) if len(figures) > 1 else 0.0
    return fmean(figures) - 2 * error > share


def correlates(results: Results, cell: Cell, place: Sequence[str] = ("test",)) -> bool:
    """Return whether Matthews' correlation of a cell's predictions at `place` is above `CHANCE`.

    Classes that are equally frequent in training only, as in few-shot runs, cost accuracy, so that
    a model that has learnt something may be below always saying the most frequent class.
    """
    (task,) = cell.config.tasks
    stored = results.values(cell, *place, task, "matthews")
    accuracies = results.values(cell, *place, task, "accuracy")
    return exceeds((stored or matthews_from_f1(results, cell, accuracies)).values(), CHANCE)


def matthews_from_f1(
    results: Results, cell: Cell, accuracies: Mapping[int, float]
) -> dict[int, float]:
    """Return Matthews' correlation of two classes on test by seed, from F1, counts and accuracy.

    QQP's metrics do not have it. With E errors, F1 = 2 TP / (2 TP + E), so that a class has
    TP = E F1 / (2 (1 - F1)).
    Empty without F1 by class, or with more than two classes.
    """
    scores, counts = (results.values(cell, key) for key in ("f1_by_class", "test_counts"))
    found = {}
    for seed in scores.keys() & counts.keys() & accuracies.keys():
        if len(counts[seed]) != 2:
            return {}
        negatives, positives = counts[seed]
        errors = (negatives + positives) * (1 - accuracies[seed])
        if errors < 0.5:
            found[seed] = 1.0
            continue
        tn, tp = (round(errors * f1 / (2 * (1 - f1))) for f1 in scores[seed])
        fp, fn = negatives - tn, positives - tp
        scale = sqrt(max(0.0, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
        found[seed] = (tp * tn - fp * fn) / scale if scale > 0.5 else 0.0
    return found


def learnt_tasks(figures: Iterable[tuple[str, Mapping[int, float]]]) -> set[str]:
    """Return the tasks with figures, by seed, above always saying the most frequent class."""
    return {task for task, found in figures if exceeds(found.values(), MAJORITY.get(task, 1.0))}


def learnt_by(
    results: Results,
    cells: Iterable[Cell],
    of: Callable[[Cell], Mapping[int, float]],
    place: Sequence[str] = ("test",),
) -> set[str]:
    """Return the tasks of which a cell has learnt something, by accuracy or by correlation.

    `of` returns accuracies by seed; the correlations are at `place` in the stored figures.
    """
    every = [*cells]
    by_accuracy = learnt_tasks((next(iter(one.config.tasks)), of(one)) for one in every)
    others = (one for one in every if correlates(results, one, place))
    return by_accuracy | {next(iter(one.config.tasks)) for one in others}


def pooling_reason(config: RunConfig) -> list[str]:
    """Return a reason if [CLS] is pooled from an encoder that was trained to average its tokens."""
    averages = config.encoder == "minilm" and config.pooling == "cls"
    return ["[CLS] of an encoder that averages its tokens"] * averages


def balance_reason(ours: RunConfig, other: RunConfig, subject: str) -> list[str]:
    """Return a reason, which begins with `subject`, if only one run has class-balanced batches."""
    unlike = ours.class_balanced != other.class_balanced
    return [f"only {subject} class-balanced batches"] * unlike


def batch_reason(configs: Iterable[RunConfig]) -> list[str]:
    """Return a reason if a step does not have as many examples in all of these runs."""
    sizes = {one.batch_size * one.step_batches for one in configs}
    return ["different batch sizes"] * (len(sizes) > 1)


def tuning_reason(
    results: Results, searches: Iterable[Search], tuned: Collection[str], reason: str
) -> list[str]:
    """Return the reason unless the settings of all cells with figures were chosen on dev.

    Otherwise return a reason if some were chosen among fewer points than the others.
    """
    measured = [one for one in searches if results.figures_by_seed(one.cell)]
    if not measured or not all(one.cell.name in tuned for one in measured):
        return [reason]
    counts = {one.cell.name: points_tried(one, results.folder) for one in measured}
    most = max(counts.values())
    sizes = {one.cell.name: len(one.points(most)) for one in measured}
    fewer = [name for name, count in counts.items() if count < sizes[name]]
    return [f"fewer points were tried for {', '.join(fewer)}"] if fewer else []


def end_of_grid_reason(
    results: Results, ours: Iterable[Search], rivals: Iterable[Search], tuned: Tuned, pairs: Pairs
) -> list[str]:
    """Return a reason if the method that is behind has the lowest or highest rate that was tried.

    A rate beyond that end could have changed the sign of the differences, by (task, seed).
    """
    tasks = {task for task, _ in pairs}
    behind = rivals if pairs and fmean(pairs.values()) > 0 else ours
    tested = [search for search in behind if tasks.intersection(search.cell.config.tasks)]
    return at_end_reason(results, tested, tuned)


def at_end_reason(results: Results, searches: Iterable[Search], tuned: Tuned) -> list[str]:
    """Return a reason if dev chose the lowest or the highest rate that was tried."""
    names = []
    for search in searches:
        tried = rates_tried(search, results.folder)
        ends = (min(tried), max(tried)) if tried else ()
        if tuned.get(search.cell.name, {}).get("lr") in ends:
            names.append(search.cell.name)
    return [f"the rate of {', '.join(names)} is at an end of those tried"] if names else []


def chosen_value_reason(
    searches: Iterable[Search], tuned: Tuned, setting: str, compared: Sequence[float]
) -> list[str]:
    """Return a reason if the value that dev chose is nearer to one of the compared values.

    The other settings are the best ones beside the chosen value, which favours those near it.
    """
    names = []
    for search in searches:
        chosen = tuned.get(search.cell.name, {}).get(setting)
        if chosen is not None:
            apart = [abs(chosen - one) for one in compared]
            if max(apart) - min(apart) > 1e-6:
                names.append(search.cell.name)
    what = "other settings were chosen with a value near one of the compared ones"
    return [f"{what} ({', '.join(names)})"] if names else []


def limit_reason(config: RunConfig, unit: str) -> list[str]:
    """Return a reason if a run has only a part of the training examples."""
    limit = config.limit
    if limit is None or isinstance(limit, Mapping):
        return []
    share = isinstance(limit, float)
    return [f"{limit:g} of the training examples" if share else f"{limit:,} examples per {unit}"]
