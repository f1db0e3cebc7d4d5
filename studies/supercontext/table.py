"""The tables of SuperConText beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reports.tables import beside, markdown_table
from studies.claims import Table, by_seed, claims_table, differences
from studies.seeds import SeedCell, kept, shown
from studies.supercontext import paper as paper
from studies.supercontext.experiments import (
    ABLATED,
    HARD,
    HEADS,
    LOSSES,
    SETTINGS,
    TASKS,
)
from studies.supercontext.results import Results

HARD_COLUMNS = [(kind, amount) for kind, amounts in HARD.items() for amount in amounts]
HOW = {"linear": "linear evaluation", "tuned": "fine-tuned"}


def both(printed: float | None, ours: Mapping[int, float]) -> str:
    """`94.15 / 81.0 ± 0.3 (6)`."""
    return beside("" if printed is None else f"{printed:.2f}", shown(ours.values()))


def losses_table(results: Results, setting: str, how: str) -> Table:
    """Table 4: a row a task, a column a loss; of absent tasks the paper's figures alone."""
    rows = []
    for task in TASKS:
        printed = dict(zip(LOSSES, paper.LOSSES.get(task, ()), strict=False))
        found = {loss: results.of(results.cells.main(setting, task, loss), how) for loss in LOSSES}
        own = printed if how == "linear" else {}
        if own or any(found.values()):
            rows.append([task, *(both(own.get(loss), found[loss]) for loss in LOSSES)])
    return ["", *LOSSES.values()], rows


def judged_table(results: Results, setting: str) -> Table:
    """Table 3: SuperLoss' encoder frozen and fine-tuned; cross-entropy's own classifier."""
    rows = []
    for task in TASKS:
        printed = dict(zip(HOW, paper.JUDGED.get(task, ()), strict=False))
        one = results.cells.main(setting, task, "superloss")
        found = {how: results.of(one, how) for how in HOW}
        plain = results.of(results.cells.main(setting, task, "ce"), "pretrained")
        if printed or any(found.values()):
            cells = [both(printed.get(how), found[how]) for how in HOW]
            rows.append([task, *cells, shown(plain.values())])
    return ["", *HOW.values(), "cross-entropy's own classifier, before fine-tuning"], rows


def heads_table(results: Results, setting: str) -> Table:
    """Table 2."""
    rows = []
    for task in ABLATED:
        printed = paper.HEADS.get(task, {})
        found = {head: results.of(results.cells.head(setting, task, head)) for head in HEADS}
        if any(found.values()):
            rows.append([task, *(both(printed.get(head), found[head]) for head in HEADS)])
    return ["", *HEADS], rows


def hard_table(results: Results, setting: str) -> Table:
    """Table 5, on dev and test: which hard negatives are best is for dev to say."""
    rows = []
    for task in ABLATED:
        every = results.cells.main(setting, task, "superloss")
        several = [every, *(results.cells.hard(setting, task, *column) for column in HARD_COLUMNS)]
        for split in ("dev", "test"):
            cells = [shown(results.of(one, split=split).values()) for one in several]
            if any(cells):
                rows.append([task, split, *cells])
    return ["", "", "all", *(f"{kind} {amount:g}" for kind, amount in HARD_COLUMNS)], rows


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


def best_hard(results: Results, setting: str, task: str) -> SeedCell | None:
    """The hard negatives of the best mean dev accuracy, as the paper chooses its threshold."""
    cells = [results.cells.hard(setting, task, *column) for column in HARD_COLUMNS]
    means = [
        np.mean(list(f.values()) or [np.nan]) for f in (results.of(o, split="dev") for o in cells)
    ]
    return None if np.isnan(means).all() else cells[int(np.nanargmax(means))]


def best_hard_table(results: Results, setting: str) -> Table:
    """Table 5: test figures of all negatives, and of the hard ones that dev chose."""
    rows = []
    for task in ABLATED:
        printed = paper.HARD.get(task, (None, None))
        best = best_hard(results, setting, task)
        every = results.of(results.cells.main(setting, task, "superloss"))
        if best is not None:
            cells = both(printed[0], every), both(printed[1], results.of(best))
            rows.append([task, *cells, best.name.partition("hard-")[2]])
    return ["", "SuperLoss", "SuperLoss*", "chosen on dev"], rows


def claims(results: Results, setting: str) -> Table:
    """SuperLoss against each rival, its projection heads, and its frozen encoder."""
    cells = results.cells
    main = {loss: [cells.main(setting, task, loss) for task in TASKS] for loss in LOSSES}
    found = {
        f"SuperLoss - {title}": differences(results.of, main["superloss"], main[loss])
        for loss, title in LOSSES.items()
        if loss != "superloss"
    }
    heads = {h: [cells.head(setting, task, h) for task in ABLATED] for h in HEADS}
    for head in ("none", "linear"):
        pair = heads["nonlinear"], heads[head]
        found[f"non-linear head - {head}"] = differences(results.of, *pair)
    best = {task: best_hard(results, setting, task) for task in ABLATED}
    hard = [(one, cells.main(setting, task, "superloss")) for task, one in best.items() if one]
    found["SuperLoss* - SuperLoss"] = differences(
        results.of, [one for one, _ in hard], [every for _, every in hard]
    )
    frozen = []
    for one in main["superloss"]:
        frozen += by_seed(results.of(one), results.of(one, "tuned"))
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
        "Projection heads (Table 2):",
        markdown_table(*heads_table(results, setting)),
        f"Hard negatives alone after {results.cells.hard_after(setting)} of {epochs} epochs "
        "(Table 5), linear evaluation on test:",
        markdown_table(*best_hard_table(results, setting)),
        "All of them (Figure 5c):",
        markdown_table(*hard_table(results, setting)),
    ]
    return [*parts, "Do the claims hold?", markdown_table(*claims(results, setting))]


def of(one: SeedCell, setting: str) -> bool:
    return one.name.startswith(f"{setting}-")
