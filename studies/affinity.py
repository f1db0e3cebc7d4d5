"""Do estimated affinities predict real gains? run.py --mode reproduce --table affinity --data DIR

One cell measures the affinities of nine tasks in a joint run. The other cells really train single
tasks and a fixed, seeded choice of subsets. All train equally long: in each of EPOCHS epochs, every
task has one pass over its LIMIT examples, one batch per step, whether it is alone or in a subset.
A subset differs from the single task only in the further gradients of its steps; no epoch is chosen
on dev. With fewer steps for each task in larger subsets, a loss would only show the missing steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import sqrt
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import numpy as np

from multitask.affinity.advisor import training_sizes
from multitask.affinity.estimators import ESTIMATORS
from multitask.affinity.measures import Measures
from multitask.affinity.run import JOINT, measure_affinity, measures_of
from multitask.config_tasks import plain_tasks
from multitask.control import RunControl
from multitask.settings.config import RunConfig
from multitask.storage.run_folder import RunFolder
from reports.tables import markdown_table
from studies import agreement
from studies.agreement import gain_of_choice, overall_rank, with_interval, within_tasks
from studies.results import Cell
from studies.runner import training
from studies.study import Report, Study, StudyRequest, notes_of

TASKS = ("sst", "qqp", "sts", "sst2", "mrpc", "rte", "cola", "qnli", "trec")
CHOSEN = {2: 22, 3: 12, 4: 4, 6: 3, 9: 1}  # number of subsets by size
SEEDS, EPOCHS, LIMIT, BATCH = (11711, 1, 2), 3, 2000, 16
ESTIMATE, EARLY = "estimate", "predicted_early"
COSINE, SIZE = "mean cosine of a run", "task size"  # naive predictors

Gains = Mapping[tuple[str, ...], Mapping[str, float]]  # subset -> task -> gain


def subsets() -> list[tuple[str, ...]]:
    """Return the subsets that are trained, the same on every machine."""
    generator, found = np.random.default_rng(2021), []
    for size, count in CHOSEN.items():
        every = list(combinations(TASKS, size))
        found += [every[k] for k in sorted(generator.choice(len(every), count, replace=False))]
    return found


def name_of(tasks: Sequence[str]) -> str:
    """Return the name of a cell: the number of tasks, and the tasks."""
    return "-".join([str(len(tasks)), *tasks])


def cells(request: StudyRequest) -> list[Cell]:
    epochs = request.epochs or EPOCHS
    limit = request.base.limit if isinstance(request.base.limit, int) else LIMIT
    base = request.base.changed(
        epochs=epochs,
        steps_per_epoch=-(-limit // BATCH),
        batch_size=BATCH,
        keep="last",
        drop_leaks=True,
        test_limit=10,  # its scores are not used
    )
    joint = base.changed(mode="multitask", tasks=TASKS)
    trained = [
        Cell(
            name_of(one),
            base.changed(
                mode="multitask" if len(one) > 1 else "single", tasks=one, evaluate_every=epochs
            ),
            SEEDS,
            dev_scores,
        )
        for one in [*((task,) for task in TASKS), *subsets()]
    ]
    return [Cell(ESTIMATE, joint, SEEDS, estimated), *trained]


def dev_scores(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run and return its figures, without those of the few test examples."""
    return {key: one for key, one in training(config, folder).items() if key != "test"}


def estimated(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Measure affinities; return predicted gains of all trained subsets, and their cost.

    `predicted_early` has those of the measures after the first epoch only.
    """
    found = measure_affinity(config, folder, control=RunControl(every_epoch=True))
    metrics = RunFolder(folder / f"{JOINT}{config.seed}").metrics() or {}
    points = measures_of(folder, config.seed)
    return {
        "predicted": predicted_by(points),
        EARLY: predicted_by(points[:1]),
        "conflicts": metrics["conflicts"],
        "sizes": training_sizes(config),
        "training_seconds": found.training_seconds,
        "measuring_seconds": found.measuring_seconds,
        "environment": metrics["environment"],
    }


def predicted_by(points: Sequence[Measures]) -> dict[str, dict[str, dict[str, float]]]:
    """Return estimator -> cell of a trained subset -> task -> gain, from measures of TASKS."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, kind in ESTIMATORS.items():
        estimator = kind.make(points)
        for one in subsets():
            places = np.array([[TASKS.index(task) for task in one]])
            gains = estimator.gains(places)[0].tolist()
            found.setdefault(name, {})[name_of(one)] = dict(zip(one, gains, strict=True))
    return found


def gains_by_seed(
    report: Report, seeds: Sequence[int] = SEEDS
) -> dict[tuple[str, ...], dict[str, list[float]]]:
    """Return the gains of each task in each trained subset, in points of its main dev metric.

    There is one for each of the seeds that the subset and the single task both have.
    """
    tasks = plain_tasks(report.cell(ESTIMATE).config)
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for one in subsets():
        for task in one:
            path = "dev", task, tasks[task].kind.main_metric
            joint, alone = (
                report.results.values(report.cell(name_of(names)), *path)
                for names in (one, (task,))
            )
            if common := [seed for seed in seeds if seed in joint and seed in alone]:
                gains = [100 * (joint[seed] - alone[seed]) for seed in common]
                found.setdefault(one, {})[task] = gains
    return found


def real_gains(report: Report, seeds: Sequence[int] = SEEDS) -> Gains:
    """Return the mean gain over seeds of each task in each trained subset."""
    found = gains_by_seed(report, seeds)
    return {one: {t: fmean(gains) for t, gains in every.items()} for one, every in found.items()}


def noise_ceiling(report: Report) -> float | None:
    """Return the correlation that a prediction of the true gains would have with the measured ones.

    It is sqrt(1 - noise / variance) of the mean gains; the noise is the variance of a mean, from
    the gains that have all seeds. None without three such gains.
    """
    every = [gains for one in gains_by_seed(report).values() for gains in one.values()]
    whole = [gains for gains in every if len(gains) == len(SEEDS)]
    if len(whole) < 3:
        return None
    noise = fmean(variance(gains) / len(gains) for gains in whole)
    total = variance(map(fmean, whole))
    return sqrt(max(0.0, 1 - noise / total)) if total else None


def predictions(report: Report) -> dict[str, Gains]:
    """Return the predicted gains of each predictor, means over the seeds of the estimate."""
    several = list(report.results.figures_by_seed(report.cell(ESTIMATE)).values())
    if not several:
        return {}

    def mean_of(value: Callable[[Any, tuple[str, ...], str], float]) -> Gains:
        return {
            one: {task: fmean(value(figures, one, task) for figures in several) for task in one}
            for one in subsets()
        }

    found = {name: mean_of(partial(predicted_gain, "predicted", name)) for name in ESTIMATORS}
    early = {
        f"{name}, first epoch": mean_of(partial(predicted_gain, EARLY, name)) for name in ESTIMATORS
    }
    return found | early | {COSINE: mean_of(mean_cosine), SIZE: mean_of(relative_size)}


def predicted_gain(
    points: str, estimator: str, figures: Mapping[str, Any], subset: Sequence[str], task: str
) -> float:
    """Return a stored prediction of an estimator, from all measures or the EARLY ones."""
    return figures[points][estimator][name_of(subset)][task]


def mean_cosine(figures: Mapping[str, Any], subset: Sequence[str], task: str) -> float:
    """Return the mean cosine of a task with the others, which every joint run reports."""
    cosines = {
        frozenset(p.split(" and ")): c["mean_cosine"] for p, c in figures["conflicts"].items()
    }
    return fmean(cosines[frozenset((task, other))] for other in subset if other != task)


def relative_size(figures: Mapping[str, Any], subset: Sequence[str], task: str) -> float:
    """Return the logarithm of the others' mean size to the task's: small tasks might gain more.

    The sizes are those of the whole training files; the runs read LIMIT examples of each.
    """
    sizes = figures["sizes"]
    return float(np.log(fmean(sizes[other] for other in subset if other != task) / sizes[task]))


def paired(predicted: Gains, real: Gains) -> list[np.ndarray]:
    """Return (n, 3) per subset: predicted gain, real gain, index of the task."""
    return [
        np.array([(predicted[one][task], gain, TASKS.index(task)) for task, gain in gains.items()])
        for one, gains in real.items()
    ]


def agreement_rows(report: Report) -> list[list[str]]:
    """Return a row per predictor, and one of the gains of one seed as those of the others."""
    real, rows = real_gains(report), []
    every = predictions(report)
    if all(real_gains(report, [seed]) for seed in SEEDS[:2]):
        every["real gain of one seed, the first"] = real_gains(report, SEEDS[:1])
    for name, predicted in every.items():
        target = real_gains(report, SEEDS[1:]) if name.startswith("real") else real
        by_subset = paired(predicted, {one: g for one, g in target.items() if one in predicted})
        row = [name]
        for measure, digits in ((overall_rank, 2), (within_tasks, 2), (gain_of_choice, 1)):
            value, *ends = (f"{v:.{digits}f}" for v in with_interval(by_subset, measure))
            row.append(f"{value} ({' to '.join(ends)})")
        rows.append([*row, str(sum(map(len, by_subset)))])
    return rows


def ceiling_text(report: Report) -> str:
    """Return what the noise of the measured gains leaves to any prediction; empty if unknown."""
    if (found := noise_ceiling(report)) is None:
        return ""
    return (
        f"The measured gains differ between seeds. A prediction that is equal to the true gains "
        f"would have a correlation of about {found:.2f} with them (Pearson's)."
    )


def cost_text(report: Report) -> str:
    """Return the time of the estimate as a share of that of the trained cells, per seed."""
    results = report.results
    estimate = results.figures_by_seed(report.cell(ESTIMATE)).values()
    spent = fmean(one["training_seconds"] + one["measuring_seconds"] for one in estimate)
    names = [name_of(one) for one in [*((task,) for task in TASKS), *real_gains(report)]]
    seconds = [results.values(report.cell(name), "training_seconds").values() for name in names]
    found = [fmean(several) for several in seconds if several]
    trained = sum(found)
    return (
        f"The estimate took {spent / 60:.0f} minutes per seed, {spent / trained:.1%} of the "
        f"{trained / 60:.0f} minutes of training of the {len(found)} cells beside it; all "
        f"{2 ** len(TASKS) - 1} subsets would need far more."
    )


def page(report: Report) -> list[str]:
    """Return the parts of the page: rank correlations, cost, and all gains."""
    parts = [notes_of(STUDY, report.request)]
    real, every = real_gains(report), predictions(report)
    if len(real) < 2 or not every:
        return [
            *parts,
            "The estimate and two subsets with their single tasks are not finished yet.",
        ]
    rows = [
        [
            " + ".join(one),
            task,
            f"{gain:+.1f}",
            *(f"{100 * every[name][one][task]:+.2f}" for name in ESTIMATORS),
        ]
        for one, gains in real.items()
        for task, gain in gains.items()
    ]
    ranks = ["Spearman, all", "Spearman within a task, mean"]
    header = ["predictor", *ranks, "highest - lowest third", "gains"]
    return [
        *parts,
        report.results.measured(report.cells),
        f"{len(real)} of {len(subsets())} subsets are finished. Real gains: difference of the main "
        "dev metric from the single task in points, mean over the seeds that both have. 95 % "
        f"intervals from bootstrapping the subsets, {agreement.DRAWS:,} samples.",
        markdown_table(header, agreement_rows(report)),
        "Highest - lowest third: what it is worth to choose partners by a predictor. The mean real "
        "gain of the third of a task's subsets with the highest predictions, less that of the "
        "lowest third, in points; mean over the tasks.",
        ceiling_text(report),
        cost_text(report),
        "## Predicted and real gains",
        "Predictions times 100; their units differ (docs/affinity.md), so that only ranks count.",
        markdown_table(["subset", "task", "real gain", *ESTIMATORS], rows),
    ]


STUDY = Study(
    name="affinity",
    title="Do estimated affinities predict real gains?",
    notes=f"every task trains on one batch of {BATCH} per step in every cell, so that a subset and "
    "a single task have equally many steps; weights of the last epoch; rates are the defaults.",
    cells=cells,
    page=page,
    precision="bf16",
    limit=LIMIT,
    limit_shares=False,
    options=("seeds", "epochs"),
)
