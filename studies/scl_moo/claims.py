"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from studies.claims import (
    NOT_LEARNT,
    Claim,
    Pairs,
    Test,
    end_of_grid_reason,
    exceeds,
    learnt_tasks,
    limit_reason,
    pooling_reason,
    tuning_reason,
    unlearnt_last,
)
from studies.results import Cell
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import TITLES, Accuracies
from studies.tuning import Search, searches_of

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)
CHANCE = 0.05  # of Matthews' correlation


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, with few examples and with all."""
    pairs = {(one, other): results.pairs(one, other) for one in OURS for other in AGAINST}
    few, full = ({names: both[place] for names, both in pairs.items()} for place in (0, 1))
    return [method_claim(results, few, few=True), method_claim(results, full, few=False)]


def method_claim(
    results: Accuracies, differences: Mapping[tuple[str, str], Pairs], few: bool
) -> Claim:
    """Return the claim with few examples or with all, from the differences of two methods.

    A test is over the tasks that meet the same conditions. Which tasks these are must not depend on
    who is ahead, so that the rates at an end of the grid are examined last.
    """
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
    known, tests = learnt(results, every), list[Test]()
    for (one, other), pairs in differences.items():
        groups = dict[tuple[str, ...], dict[tuple[str, int], float]]()
        for task in dict.fromkeys(task for task, _ in pairs):
            of_task = {key: gain for key, gain in pairs.items() if key[0] == task}
            reasons = [NOT_LEARNT] * (task not in known)
            reasons += unfair(results, one, other, of_task, few)
            groups.setdefault(tuple(reasons), {}).update(of_task)
        if not pairs:
            groups[tuple(unfair(results, one, other, {}, few))] = {}
        for why, several in groups.items():
            names = ", ".join(dict.fromkeys(task for task, _ in several))
            what = f"{TITLES[one]} - {TITLES[other]}" + (f" on {names}" if names else "")
            ours, rivals = searches_of_two(results, one, other, few)
            tuned = results.cells.tuned
            at_end = end_of_grid_reason(results.stored, ours, rivals, tuned, several)
            tests.append(Test(what, several, [*why, *at_end]))
    what, table = ("few-shot", "Table 2") if few else ("all data", "Table 3")
    text = f"LS and EPO are better than the baselines, {what}"
    return Claim(text, table, unlearnt_last(tests))


def learnt(results: Accuracies, cells: Iterable[Cell]) -> set[str]:
    """Return the tasks of which a method has learnt something.

    Its accuracy is above always saying the most frequent class, or Matthews' correlation is above
    `CHANCE`: classes that are equally frequent in training, as in few-shot runs, cost accuracy.
    """
    found = set[str]()
    for one in cells:
        (task,) = one.config.tasks
        matthews = results.stored.values(one, "test", task, "matthews")
        if exceeds(matthews.values(), CHANCE) or learnt_tasks([(task, results.of(one))]):
            found.add(task)
    return found


def searches_of_two(
    results: Accuracies, one: str, other: str, few: bool
) -> tuple[list[Search], list[Search]]:
    """Return the searches of two methods, with few examples or with all."""
    every, kind = results.cells.searches, "few-shot" if few else "full"
    return searches_of(every, kind, one), searches_of(every, kind, other)


def unfair(results: Accuracies, one: str, other: str, pairs: Pairs, few: bool) -> list[str]:
    """Return the conditions of a fair test that the settings of two methods do not meet."""
    cells, tasks = results.cells, {task for task, _ in pairs} or {*scl_moo.TASKS}
    ours, plain = (
        (cells.few_shot("sst2", 50, m) if few else cells.full("sst2", m)).config
        for m in (one, other)
    )
    searched = [
        search
        for several in searches_of_two(results, one, other, few)
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
    return reasons
