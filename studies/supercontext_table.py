"""The tables and figures of SuperConText beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from reports.drawing import new_figure, save_figure
from reports.tables import markdown_table
from studies import supercontext_paper as paper
from studies.claims import READING, Table, claims_table
from studies.seeds import SeedCell, kept, shown, values
from studies.supercontext import (
    BOTH,
    FIRST,
    HARD,
    HEADS,
    JUDGED,
    LOSSES,
    SETTINGS,
    SWEEP_SEEDS,
    SWEEPS,
    SWEPT,
    TASKS,
    Experiments,
)

HOW = {"linear": "linear evaluation", "tuned": "fine-tuned"}


class Results:
    """Accuracies of the kept cells by seed, however far the study is."""

    def __init__(self, cells: Experiments, folder: Path) -> None:
        self.cells, self.folder = cells, folder

    def of(self, one: SeedCell, how: str = "linear", split: str = "test") -> dict[int, float]:
        (task,) = one.config.tasks
        return values(one, self.folder, how, split, task, "accuracy")


def beside(printed: float | None, ours: Mapping[int, float]) -> str:
    """`94.15 / 81.0 ± 0.3 (6)`."""
    found = shown(ours.values())
    if not found:
        return "" if printed is None else f"{printed:.2f} /"
    return f"{'' if printed is None else f'{printed:.2f}'} / {found}"


def losses_table(results: Results, setting: str, how: str) -> Table:
    """Table 4: a row a task, a column a loss."""
    rows = []
    for task in TASKS:
        printed = dict(zip(LOSSES, paper.LOSSES.get(task, ()), strict=False))
        found = {loss: results.of(results.cells.main(setting, task, loss), how) for loss in LOSSES}
        if any(found.values()):
            own = printed if how == "linear" else {}
            rows.append([task, *(beside(own.get(loss), found[loss]) for loss in LOSSES)])
    return ["", *LOSSES.values()], rows


def judged_table(results: Results, setting: str) -> Table:
    """Table 3: SuperLoss' encoder frozen and fine-tuned, and cross-entropy's."""
    rows = []
    for task in TASKS:
        printed = dict(zip(HOW, paper.JUDGED.get(task, ()), strict=False))
        one = results.cells.main(setting, task, "superloss")
        found = {how: results.of(one, how) for how in HOW}
        if any(found.values()):
            rows.append([task, *(beside(printed.get(how), found[how]) for how in HOW)])
    return ["", *HOW.values()], rows


def heads_table(results: Results, setting: str) -> Table:
    """Table 2."""
    rows = []
    for task in JUDGED:
        printed = paper.HEADS.get(task, {})
        found = {head: results.of(results.cells.head(setting, task, head)) for head in HEADS}
        if any(found.values()):
            rows.append([task, *(beside(printed.get(head), found[head]) for head in HEADS)])
    return ["", *HEADS], rows


def hard_table(results: Results, setting: str) -> Table:
    """Table 5, on dev and test: which hard negatives are best is for dev to say."""
    columns = [(kind, amount) for kind, amounts in HARD.items() for amount in amounts]
    rows = []
    for task in JUDGED:
        every = results.cells.main(setting, task, "superloss")
        several = [every, *(results.cells.hard(setting, task, *column) for column in columns)]
        for split in ("dev", "test"):
            cells = [shown(results.of(one, split=split).values()) for one in several]
            if any(cells):
                rows.append([task, split, *cells])
    return ["", "", "all", *(f"{kind} {amount:g}" for kind, amount in columns)], rows


def printed_hard_table() -> Table:
    """Table 5 as printed."""
    rows = [
        [
            task,
            *(f"{value:.2f}" for value in pair),
            "mixed up in print" * (task in paper.MISPRINTED),
        ]
        for task, pair in paper.HARD.items()
    ]
    return ["", "SuperLoss", "SuperLoss*", ""], rows


def sweep_table(results: Results) -> Table:
    """Figures 4, 5a and 5b as numbers."""
    rows = []
    for what, points in SWEEPS.items():
        for loss in ("superloss", "ce") if what in BOTH else ("superloss",):
            found = [shown(swept(results, what, value, loss).values()) for value in points]
            if any(found):
                cells = [f"{v:g}: {cell}" for v, cell in zip(points, found, strict=True) if cell]
                rows.append([what, LOSSES[loss], ", ".join(cells)])
    return ["", "", f"{SWEPT}, dev accuracy of the linear evaluation"], rows


def swept(results: Results, what: str, value: float, loss: str) -> dict[int, float]:
    """On dev; of the sweep's seeds alone."""
    found = results.of(results.cells.sweep(what, value, loss), split="dev")
    return {seed: figure for seed, figure in found.items() if seed in SWEEP_SEEDS}


def draw_sweeps(results: Results) -> None:
    """Figures 4, 5a and 5b: a figure a setting."""
    for what, points in SWEEPS.items():
        figure, axis = new_figure(4.2, 3.2)
        for loss in ("superloss", "ce") if what in BOTH else ("superloss",):
            found = {value: swept(results, what, value, loss) for value in points}
            line = [(v, 100 * np.mean(list(s.values()))) for v, s in found.items() if s]
            if line:
                axis.plot(*zip(*line, strict=True), marker="o", label=LOSSES[loss])
        if axis.lines:
            axis.set(xlabel=what, ylabel=f"{SWEPT} dev accuracy")
            axis.legend(fontsize=7)
            save_figure(figure, results.folder / f"sweep-{what}.png")


def differences(results: Results, first: list[SeedCell], second: list[SeedCell]) -> list[float]:
    """Of test accuracies of linear evaluation, over (task, seed) pairs that both have."""
    found = []
    for one, other in zip(first, second, strict=True):
        mine, theirs = results.of(one), results.of(other)
        found += [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]
    return found


def claims(results: Results, setting: str) -> Table:
    """SuperLoss against each rival, its projection heads, and its frozen encoder."""
    cells = results.cells
    main = {loss: [cells.main(setting, task, loss) for task in TASKS] for loss in LOSSES}
    found = {
        f"SuperLoss - {title}": differences(results, main["superloss"], main[loss])
        for loss, title in LOSSES.items()
        if loss != "superloss"
    }
    if setting in FIRST:
        heads = {h: [cells.head(setting, task, h) for task in JUDGED] for h in HEADS}
        for head in ("none", "linear"):
            pair = heads["nonlinear"], heads[head]
            found[f"non-linear head - {head}"] = differences(results, *pair)
    frozen = []
    for one in main["superloss"]:
        linear, tuned = results.of(one), results.of(one, "tuned")
        frozen += [linear[seed] - tuned[seed] for seed in linear]
    found["frozen - fine-tuned (SuperLoss)"] = frozen
    return claims_table(found)


def setting_parts(results: Results, setting: str) -> list[str]:
    """The tables of one kind of encoder."""
    if not any(kept(one, results.folder) for one in results.cells.every() if of(one, setting)):
        return []
    numbers = SETTINGS[setting]
    encoder = results.cells.main(setting, TASKS[0], "ce").config.encoder
    epochs = results.cells.epochs or numbers.epochs
    parts = [
        f"## {setting}: {encoder}, {epochs} + {epochs} epochs, batches of {numbers.batch_size} "
        f"(cross-entropy {numbers.ce_batch_size})",
        "Five losses, linear evaluation (Table 4):",
        markdown_table(*losses_table(results, setting, "linear")),
        "The same encoders fine-tuned with cross-entropy:",
        markdown_table(*losses_table(results, setting, "tuned")),
        "SuperLoss, frozen or fine-tuned (Table 3):",
        markdown_table(*judged_table(results, setting)),
    ]
    if setting in FIRST:
        parts += [
            "Projection heads (Table 2):",
            markdown_table(*heads_table(results, setting)),
            "Hard negatives in the last two thirds of the epochs (Table 5, Figure 5c), linear "
            "evaluation:",
            markdown_table(*hard_table(results, setting)),
        ]
    return [*parts, "Do the claims hold?", markdown_table(*claims(results, setting))]


def of(one: SeedCell, setting: str) -> bool:
    return one.name.startswith(f"{setting}-")


def report(results: Results, command: str, notes: str) -> str:
    """results/supercontext.md."""
    cells = results.cells.every()
    done = sum(len(kept(one, results.folder)) >= len(one.seeds) for one in cells)
    parts = [
        "# SuperConText, beside ours",
        f"`{command}`",
        f"{done} of {len(cells)} cells are finished. Every cell: the paper's figure (BiLSTM of "
        "three layers of 512 over GloVe, 60 epochs) / ours, test accuracy in per cent, mean ± "
        "standard deviation (seeds).",
        notes,
        READING,
    ]
    for setting in SETTINGS:
        parts += setting_parts(results, setting)
    parts += [
        "## Table 5 as printed",
        markdown_table(*printed_hard_table()),
        "## Figures 4 and 5: layers, units, batch size, temperature, positives and negatives",
        markdown_table(*sweep_table(results)),
    ]
    return "\n\n".join(parts) + "\n"
