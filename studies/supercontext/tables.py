"""Tables of the SuperConText study: the paper's figures and those of the stored cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.tables import Table, titled_table
from studies.claims import beside_paper, points_text, select_seeds, shown
from studies.results import Cell, Results
from studies.study import printed
from studies.supercontext import cells as supercontext

PRINTED = printed("supercontext")


@dataclass(frozen=True)
class Accuracies:
    """Accuracies of the stored cells by seed, of a finished or unfinished study."""

    cells: supercontext.Experiments
    stored: Results

    def of(self, one: Cell, how: str = "linear", split: str = "test") -> dict[int, float]:
        (task,) = one.config.tasks
        return self.stored.values(one, how, split, task, "accuracy")


HARD_COLUMNS = [(kind, amount) for kind, amounts in supercontext.HARD.items() for amount in amounts]
HOW = {"linear": "linear evaluation", "tuned": "fine-tuned"}


def losses_table(results: Accuracies, setting: str, how: str) -> Table:
    """Return Table 4: a row per task, a column per loss; missing tasks have only paper figures."""
    rows = []
    for task in supercontext.TASKS:
        known = dict(zip(supercontext.LOSSES, PRINTED["losses"].get(task, ()), strict=False))
        found = {
            loss: results.of(results.cells.main(setting, task, loss), how)
            for loss in supercontext.COMPARED
        }
        own = known if how == "linear" else {}
        if own or any(found.values()):
            rows.append(
                [
                    task,
                    *(beside_paper(own.get(loss), figures, 2) for loss, figures in found.items()),
                ]
            )
    return ["", *supercontext.COMPARED.values()], rows


def frozen_or_tuned_table(results: Accuracies, setting: str) -> Table:
    """Return Table 3: SuperLoss' encoder frozen and fine-tuned; cross-entropy's classifier."""
    rows = []
    for task in supercontext.TASKS:
        known = dict(zip(HOW, PRINTED["judged"].get(task, ()), strict=False))
        one = results.cells.main(setting, task, "superloss")
        found = {how: results.of(one, how) for how in HOW}
        plain = results.of(results.cells.main(setting, task, "ce"), "pretrained")
        if known or any(found.values()):
            cells = [beside_paper(known.get(how), found[how], 2) for how in HOW]
            rows.append([task, *cells, shown(plain.values())])
    return ["", *HOW.values(), "cross-entropy's own classifier, before fine-tuning"], rows


def heads_table(results: Accuracies, setting: str) -> Table:
    """Return Table 2."""
    rows = []
    for task in supercontext.ABLATED:
        known = PRINTED["heads"].get(task, {})
        found = {
            head: results.of(results.cells.head(setting, task, head)) for head in supercontext.HEADS
        }
        if any(found.values()):
            rows.append(
                [
                    task,
                    *(beside_paper(known.get(head), found[head], 2) for head in supercontext.HEADS),
                ]
            )
    return ["", *supercontext.HEADS], rows


def hard_table(results: Accuracies, setting: str) -> Table:
    """Return all figures of Table 5 on dev, which selects the hard negatives, and on test."""
    rows = []
    for task in supercontext.ABLATED:
        every = results.cells.main(setting, task, "superloss")
        several = [every, *(results.cells.hard(setting, task, *column) for column in HARD_COLUMNS)]
        for split in ("dev", "test"):
            cells = [shown(results.of(one, split=split).values()) for one in several]
            if any(cells):
                rows.append([task, split, *cells])
    return ["", "", "all", *(f"{kind} {amount:g}" for kind, amount in HARD_COLUMNS)], rows


def printed_hard_table() -> Table:
    """Return Table 5 as printed."""
    rows = [
        [
            task,
            *(f"{value:.2f}" for value in pair),
            "mixed up in print" * (task in PRINTED["misprinted"]),
        ]
        for task, pair in PRINTED["hard"].items()
    ]
    return ["", "SuperLoss", "SuperLoss*", ""], rows


def best_hard(results: Accuracies, setting: str, task: str) -> Cell | None:
    """Return the cell of hard negatives with the best mean dev accuracy, the paper's criterion."""
    cells = [results.cells.hard(setting, task, *column) for column in HARD_COLUMNS]
    means = [
        np.mean(list(f.values()) or [np.nan]) for f in (results.of(o, split="dev") for o in cells)
    ]
    return None if np.isnan(means).all() else cells[int(np.nanargmax(means))]


def best_hard_table(results: Accuracies, setting: str) -> Table:
    """Return Table 5: test figures of all negatives and of the hard ones selected on dev."""
    rows = []
    for task in supercontext.ABLATED:
        known = PRINTED["hard"].get(task, (None, None))
        best = best_hard(results, setting, task)
        every = results.of(results.cells.main(setting, task, "superloss"))
        if best is not None:
            cells = [
                beside_paper(paper, ours, 2)
                for paper, ours in zip(known, (every, results.of(best)), strict=True)
            ]
            rows.append([task, *cells, best.name.partition("hard-")[2]])
    return ["", "SuperLoss", "SuperLoss*", "chosen on dev"], rows


def encoder_title(results: Accuracies, setting: str) -> str:
    """Return the name of a setting's encoder, such as `minilm` or `small BiLSTM`."""
    is_bilstm = supercontext.SETTINGS[setting].words is not None
    return f"{setting} BiLSTM" if is_bilstm else str(results.cells.base.encoder)


def setting_parts(results: Accuracies, setting: str) -> list[str]:
    """Return the tables of one kind of encoder; empty without stored cells."""
    cells = [one for one in results.cells.every() if one.name.startswith(f"{setting}-")]
    if not any(map(results.stored.figures_by_seed, cells)):
        return []
    numbers = supercontext.SETTINGS[setting]
    epochs = results.cells.epochs or numbers.epochs
    title = encoder_title(results, setting)
    encoder = results.cells.main(setting, supercontext.TASKS[0], "ce").config.encoder
    name = f"rows `{setting}-...`" if title == encoder else encoder
    tables = {
        "Five losses, the last column a control, linear evaluation (Table 4):": losses_table(
            results, setting, "linear"
        ),
        "The same encoders fine-tuned with cross-entropy, the last column a control:": losses_table(
            results, setting, "tuned"
        ),
        "SuperLoss, frozen or fine-tuned (Table 3):": frozen_or_tuned_table(results, setting),
        "Projection heads (Table 2):": heads_table(results, setting),
        f"Only hard negatives after {results.cells.hard_after(setting)} of {epochs} epochs "
        "(Table 5), linear evaluation on test:": best_hard_table(results, setting),
        "All of them (Figure 5c):": hard_table(results, setting),
    }
    return [
        f"## {title} ({name}), {epochs} + {epochs} epochs, batches of {numbers.batch_size} "
        f"(cross-entropy {numbers.ce_batch_size})",
        *(part for text, table in tables.items() for part in titled_table(text, table)),
    ]


def sweep_table(results: Accuracies) -> Table:
    """Return Figures 4, 5a and 5b as numbers."""
    found: dict[tuple[str, str], dict[float, dict[int, float]]] = {}
    for what, value, loss in supercontext.sweep_points():
        points = found.setdefault((what, supercontext.LOSSES[loss]), {})
        points[value] = swept(results, what, value, loss)
    rows = [[*key, text] for key, points in found.items() if (text := points_text(points))]
    return ["", "", f"{supercontext.SWEPT}, dev accuracy of the linear evaluation"], rows


def swept(results: Accuracies, what: str, value: float, loss: str) -> dict[int, float]:
    """Return dev accuracies of the sweep's seeds only."""
    return select_seeds(
        results.of(results.cells.sweep(what, value, loss), split="dev"), supercontext.SWEEP_SEEDS
    )
