"""Do branches close the gap between a shared and a single model?

    run.py --mode reproduce --table branching --data DIR --limit 0.25

All three tasks are trained together for one epoch. From there, similarity gets LAYERS layers of its
own: those in which its gradients conflict most, the top ones, or random ones. The shared model
goes on for as many epochs without branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from common.errors import SettingsError
from multitask.settings.config import RunConfig
from multitask.storage.run_folder import RunFolder
from reports.tables import markdown_table, mean_and_spread
from studies.claims import Claim, Pairs, between, claim_of
from studies.fairness import batch_reason, limit_reason
from studies.results import Cell
from studies.runner import training
from studies.sharing_cells import encoder_config
from studies.study import Report, Study, StudyRequest, notes_of
from tasks import CS224N
from tasks.metrics import LEADERBOARD

TASK = "sts"
LAYERS = 3  # three of MiniLM's six layers are 23 % more parameters
SEEDS = (11711, 1, 2, 3, 4)
JOINT_EPOCHS, EPOCHS = 1, 2  # before and after the branch
SHARED, SINGLE, JOINT, CONFLICT, TOP, RANDOM = (
    *("shared", "single", "joint", "conflict", "top", "random"),
)
TITLES = {
    SINGLE: "a model of its own",
    SHARED: "shared, without branches",
    CONFLICT: "branches in the layers with the lowest mean cosine",
    TOP: "branches in the top layers",
    RANDOM: "branches in random layers",
}


def drawn_layers(seed: int, count: int) -> tuple[int, ...]:
    """Return LAYERS random layers of `count`, numbered from 1, the same on every machine."""
    drawn = np.random.default_rng(seed).permutation(count)[:LAYERS] + 1
    return tuple(sorted(drawn.tolist()))


def cells(request: StudyRequest) -> list[Cell]:
    """Return the cells; random layers have one cell per seed, each with other layers."""
    epochs = request.epochs or EPOCHS
    base = request.base.changed(test_limit=10)  # its scores are not used
    multitask = base.changed(mode="multitask", tasks=CS224N, sampling="annealed", epochs=epochs)
    first = multitask.changed(epochs=JOINT_EPOCHS, keep="last")
    joint = Cell(JOINT, first, SEEDS, branch_training, keeps_folder=True)

    def after(name: str, seeds: Sequence[int] = SEEDS, **layers: Any) -> Cell:
        settings: dict[str, Any] = {"adapter": "copies", "adapter_only": (TASK,)} if layers else {}
        config = multitask.changed(init=JOINT, **settings, **layers)
        return Cell(name, config, tuple(seeds), branch_training, joint)

    single = base.changed(tasks=(TASK,), epochs=JOINT_EPOCHS + epochs)
    count = encoder_config(request.base.encoder).num_layers
    return [
        joint,
        Cell(SINGLE, single, SEEDS, branch_training),
        after(SHARED),
        after(CONFLICT, adapter_conflict_layers=LAYERS),
        after(TOP, adapter_top_layers=LAYERS),
        *(
            after(f"{RANDOM}-{seed}", [seed], adapter_layers=drawn_layers(seed, count))
            for seed in SEEDS
        ),
    ]


def is_wanted(one: Cell, request: StudyRequest) -> bool:
    """Return whether a cell is requested; random layers only for the requested seeds."""
    _, _, seed = one.name.partition("-")
    named = request.rows is None or one.name in request.rows
    return named and (not seed or int(seed) in SEEDS[: request.seeds])


def check(request: StudyRequest) -> None:
    """Raise SettingsError for an encoder with too few layers."""
    count = encoder_config(request.base.encoder).num_layers
    if count <= LAYERS:
        raise SettingsError(f"encoder: expected more than {LAYERS} layers, found {count}")


def branch_training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run; return its figures, its parameters, and the layers of its branches."""
    found, place = training(config, folder), RunFolder(folder)
    stored = place.settings()
    return found | {
        "parameters": (place.metrics() or {})["parameters"],
        "layers": stored.get("adapter_layers", []),
    }


def figures(report: Report, row: str) -> dict[int, Any]:
    """Return the figures of a row by seed, of random layers those of all their cells."""
    several = [one for one in report.cells if one.name.split("-")[0] == row]
    return {
        seed: one for cell in several for seed, one in report.results.figures_by_seed(cell).items()
    }


def scores(report: Report, row: str, task: str = TASK) -> dict[int, float]:
    """Return the main dev metric of a task by seed, empty if the row does not train it."""
    trained = {seed: one["dev"] for seed, one in figures(report, row).items() if task in one["dev"]}
    return {seed: dev[task][LEADERBOARD[task]] for seed, dev in trained.items()}


def parameters_of(figures: Any) -> int:
    """Return the parameters of encoder and branches, without heads."""
    counts = figures["parameters"]
    return counts["shared"] + sum(one.get("adapter", 0) for one in counts["tasks"].values())


def closed(report: Report, row: str) -> str:
    """Return the share of the gap between shared and single model that a row closes, in per cent.

    It is that of the means over the seeds that all three have; empty for these two.
    """
    single, shared, ours = (scores(report, name) for name in (SINGLE, SHARED, row))
    common = single.keys() & shared.keys() & ours.keys()
    if not common or row in (SINGLE, SHARED):
        return ""
    above, below, mine = (fmean(one[s] for s in common) for one in (single, shared, ours))
    return f"{(mine - below) / (above - below):.0%}" if above > below else "no gap"


def table(report: Report) -> str:
    rows = []
    base = [parameters_of(one) for one in figures(report, SHARED).values()]
    for name, title in TITLES.items():
        found = figures(report, name)
        if not found:
            continue
        several = [[100 * one for one in scores(report, name, t).values()] for t in CS224N]
        layers = {" ".join(map(str, one["layers"])) for one in found.values()} - {""}
        size = fmean(map(parameters_of, found.values())) / fmean(base) if base else float("nan")
        rows.append(
            [
                title,
                "; ".join(sorted(layers)),
                str(len(found)),
                *(mean_and_spread(one, 1) if one else "" for one in several),
                f"{size:.2f}",
                closed(report, name),
            ]
        )
    header = ["", "layers", "seeds", "SST", "QQP", "STS", "parameters", "gap closed"]
    return markdown_table(header, rows)


def claims(report: Report) -> list[Claim]:
    """Return whether branches help, and whether conflicts choose better layers."""
    by_row = {row: scores(report, row) for row in TITLES}

    def lines(row: str, *others: str) -> dict[str, Pairs]:
        return {f"{row} - {other}": between(by_row[row], by_row[other]) for other in others}

    part = "".join(f", with {one}" for one in limit_reason(report.request.base, "task"))
    untuned = ["rates are the defaults"]
    unlike = batch_reason(report.cell(row).config for row in (SINGLE, SHARED))
    return [
        claim_of(text + part, "ours", several, reasons)
        for text, several, reasons in (
            ("a model of its own is better", lines(SINGLE, SHARED), [*untuned, *unlike]),
            ("branches help", lines(CONFLICT, SHARED), untuned),
            ("conflicts choose better layers", lines(CONFLICT, RANDOM, TOP), untuned),
        )
    ]


def page(report: Report) -> list[str]:
    """Return the parts of the page."""
    return [
        notes_of(STUDY, report.request),
        report.results.measured(report.cells),
        f"Only {TASK} has branches, of {LAYERS} layers. *Parameters* are those of encoder and "
        "branches as a multiple of the shared model's; three models of their own have 3.00. *Gap "
        f"closed* is (row - shared) / (single - shared), of the mean {TASK} scores. Mean ± "
        "standard deviation on dev, in per cent; the best epoch was chosen on the same dev.",
        table(report),
    ]


STUDY = Study(
    name="branching",
    title="Branches where gradients conflict",
    notes=f"{JOINT_EPOCHS} joint epoch, then {EPOCHS} of each row from the same weights; rates are "
    "the defaults.",
    cells=cells,
    page=page,
    claims=claims,
    wanted=is_wanted,
    check=check,
    precision="bf16",
    options=("seeds", "epochs"),
    by_beginning=False,
    audited=True,
)
