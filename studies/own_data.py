"""Calibration, coverage and rare classes on GLUE and TREC: run.py --mode reproduce --table own-data

Calibration and coverage are measured on dev, of which a third calibrates, in five draws. No choice
was made on it: a run keeps the weights of its last epoch. Rare classes: training examples drawn
with a geometric scale of class sizes, scored on the whole dev file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from multitask.calibration import COVERAGE, SHARE
from multitask.settings.config import RunConfig
from multitask.storage.run_folder import RunFolder
from reports.tables import markdown_table, mean_and_spread
from studies.results import Cell
from studies.runner import long_training
from studies.study import Report, Study, StudyRequest, notes_of
from tasks import build_task
from tasks.calibration import report
from tasks.predictions import read_scores

CALIBRATED = ("trec", "sst2", "cola", "qnli")
DRAWS = 5
CALIBRATION_LIMIT = 20_000  # training examples
RARE = {"sst2": {"shots": 100, "imbalance": 20.0}, "trec": {"shots": 35, "imbalance": 14.0}}
LOSSES: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "balanced": {"class_weights": "balanced"},
    "effective": {"class_weights": "effective"},
    "focal": {"focal_gamma": 2.0},
    "adjusted": {"logit_adjustment": 1.0},
    "class-balanced": {"class_balanced": True},
}
SEEDS, EPOCHS, RARE_EPOCHS = (11711, 1, 2), 3, 6


def calibrated_training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run and measure the calibration by each of `DRAWS` thirds of dev on the others."""
    found, (name,) = long_training(config, folder), config.tasks
    scores = read_scores(RunFolder(folder).scores(name, "dev"))
    calibrator = build_task(name).kind.calibrator
    assert calibrator is not None
    assert scores.targets is not None
    draws = []
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(len(scores.targets))
        first, rest = np.split(order, [round(SHARE * len(order))])
        fitted = calibrator.fit(scores.values[first], scores.targets[first])
        draws.append(
            report(calibrator, fitted, scores.values[rest], scores.targets[rest], COVERAGE)
        )
    return found | {"calibration_draws": draws}


def cells(request: StudyRequest) -> list[Cell]:
    base = request.base.changed(mode="single")
    calibrated = [
        Cell(
            f"calibrated-{task}",
            base.changed(
                tasks=(task,),
                epochs=request.epochs or EPOCHS,
                limit=base.limit or CALIBRATION_LIMIT,
                keep="last",
                evaluate_every=request.epochs or EPOCHS,
            ),
            SEEDS[:1],
            calibrated_training,
        )
        for task in CALIBRATED
    ]
    rare = [
        Cell(
            f"rare-{task}-{name}",
            base.changed(
                tasks=(task,),
                epochs=request.epochs or RARE_EPOCHS,
                limit=None,
                protocol="imbalanced",
                select_by="macro_f1",
                **sizes,
                **loss,
            ),
            SEEDS,
            long_training,
        )
        for task, sizes in RARE.items()
        for name, loss in LOSSES.items()
    ]
    return [*calibrated, *rare]


def page(found: Report) -> list[str]:
    """Return the parts of the page: calibration and coverage, then the losses for rare classes."""
    return [
        notes_of(STUDY, found.request),
        "## Calibration and coverage",
        f"Means over {DRAWS} draws of the third of dev that calibrates, lowest and highest in "
        f"brackets; the nominal coverage is {COVERAGE:.0%}. ECE: expected calibration error of 15 "
        "bins, before and after temperature scaling.",
        markdown_table(
            ["task", "dev", "accuracy", "ECE before", "ECE after", "coverage", "labels in a set"],
            calibration_rows(found),
        ),
        "## Rare classes",
        "Mean and standard deviation over the seeds, in per cent, on the whole dev file, whose "
        "classes have their natural shares. In the training data the rarest class has 100 examples "
        "and the other one 2,000 (SST-2), or 35 and the most frequent 490 (TREC). "
        "*class-balanced*: batches with as many examples of each class.",
        markdown_table(
            ["task", "loss", "accuracy", "macro F1", "recall of the rarest", "seeds"],
            rare_rows(found),
        ),
    ]


def calibration_rows(found: Report) -> list[list[str]]:
    rows = []
    for task in CALIBRATED:
        cell = found.cell(f"calibrated-{task}")
        for one in found.results.figures_by_seed(cell).values():
            draws: Sequence[Mapping[str, float]] = one["calibration_draws"]
            count = draws[0]["calibration_examples"] + draws[0]["scored_examples"]
            accuracy = one["dev"][task]["accuracy"]
            row = [task, f"{count:,.0f}", f"{100 * accuracy:.1f}"]
            for key in ("ece_before", "ece_after"):
                row.append(f"{fmean(one[key] for one in draws):.3f}")
            covered = [one["coverage"] for one in draws]
            row.append(f"{fmean(covered):.1%} ({min(covered):.1%} to {max(covered):.1%})")
            rows.append([*row, f"{fmean(one['mean_set_size'] for one in draws):.2f}"])
    return rows


def rare_rows(found: Report) -> list[list[str]]:
    rows = []
    for task in RARE:
        for name in LOSSES:
            cell = found.cell(f"rare-{task}-{name}")
            figures = list(found.results.figures_by_seed(cell).values())
            if not figures:
                continue
            scores: list[list[float]] = [[], [], []]
            for one in figures:
                classes = one["by_class"]["test"][task]
                rarest = min(
                    classes, key=lambda label: one["by_class"]["dev"][task][label]["support"]
                )
                scores[0].append(one["test"][task]["accuracy"])
                scores[1].append(fmean(each["f1"] for each in classes.values()))
                scores[2].append(classes[rarest]["recall"])
            shown = [mean_and_spread([100 * value for value in each], 1) for each in scores]
            rows.append([task, name, *shown, str(len(figures))])
    return rows


STUDY = Study(
    name="own-data",
    title="Calibration, coverage and rare classes",
    notes="the rates are the toolkit's defaults, not tuned.",
    cells=cells,
    page=page,
    precision="bf16",
    options=("seeds", "epochs"),
)
