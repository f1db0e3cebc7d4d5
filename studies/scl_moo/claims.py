"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from studies.claims import (
    Claim,
    PairReasons,
    Pairs,
    claim_of,
    correlates,
    end_of_grid_reason,
    learnt_tasks,
    limit_reason,
    pooling_reason,
    tuning_reason,
)
from studies.results import Cell
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import PRINTED, TITLES, Accuracies
from studies.tuning import Search, searches_of

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, with few examples and with all."""
    pairs = {(one, other): results.pairs(one, other) for one in OURS for other in AGAINST}
    few, full = ({names: both[place] for names, both in pairs.items()} for place in (0, 1))
    return [method_claim(results, few, few=True), method_claim(results, full, few=False)]


def method_claim(
    results: Accuracies, differences: Mapping[tuple[str, str], Pairs], few: bool
) -> Claim:
    """Return the claim with few examples or with all, from the differences of two methods."""
    cells = results.cells
    if few:
        every = [
            cells.few_shot(task, shots, method)
            for task in scl_moo.TASKS
            for shots in results.tested_shots(task)
            for method in TITLES
        ]
    else:
        every = [cells.full(task, method) for task in scl_moo.FULL for method in TITLES]
    lines, further = dict[str, Pairs](), dict[str, PairReasons]()
    for (one, other), pairs in differences.items():
        line = f"{TITLES[one]} - {TITLES[other]}"
        lines[line], further[line] = pairs, partial(unfair, results, one, other, few)
    what, table = ("few-shot", "Table 2") if few else ("all data, several sets", "Table 3")
    text = f"LS and EPO are better than the baselines, {what}"
    printed = PRINTED["few_shot" if few else "full"]
    return claim_of(text, table, lines, (), learnt(results, every), further, printed)


def learnt(results: Accuracies, cells: Iterable[Cell]) -> set[str]:
    """Return the tasks of which a method has learnt something, by accuracy or correlation."""
    cells = [*cells]
    by_accuracy = learnt_tasks((one.config.tasks[0], results.of(one)) for one in cells)
    return by_accuracy | {one.config.tasks[0] for one in cells if correlates(results.stored, one)}


def searches_of_two(
    results: Accuracies, one: str, other: str, few: bool
) -> tuple[list[Search], list[Search]]:
    """Return the searches of two methods, with few examples or with all."""
    every, kind = results.cells.searches, "few-shot" if few else "full"
    return searches_of(every, kind, one), searches_of(every, kind, other)


def unfair(results: Accuracies, one: str, other: str, few: bool, pairs: Pairs) -> list[str]:
    """Return the conditions of a fair test of these pairs that two methods do not meet."""
    cells, tasks = results.cells, {task for task, _ in pairs}
    ours, plain = (
        (cells.few_shot("sst2", 50, m) if few else cells.full("sst2", m)).config
        for m in (one, other)
    )
    both = searches_of_two(results, one, other, few)
    searched = [
        search
        for several in both
        for search in several
        if tasks.intersection(search.cell.config.tasks)
    ]
    tuned = any(name.startswith("few-shot" if few else "full") for name in cells.tuned)
    of_control = tuned and other in scl_moo.CONTROLS
    untuned = scl_moo.CONTROL_NOT_TUNED if of_control else scl_moo.NOT_TUNED
    reasons = [
        *pooling_reason(plain),
        *limit_reason(plain, "task"),
        *tuning_reason(results.stored, searched, cells.tuned, untuned),
    ]
    if plain.class_balanced != ours.class_balanced:
        reasons.append("only LS and EPO have class-balanced batches")
    if few and plain.epochs <= scl_moo.EPOCHS:
        reasons.append(f"{plain.epochs} epochs, not until the loss is flat")
    return [*reasons, *end_of_grid_reason(results.stored, *both, cells.tuned, pairs)]
