"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from studies.claims import Claim, Pairs, Test, limit_reason, pooling_reason, tuning_reason
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import TITLES, Accuracies

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)
NOT_LEARNT = "no method is above always saying the most frequent class"


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, with few examples and with all.

    With few examples, tasks that no method has learnt have tests of their own.
    """
    learnt = {task for task in scl_moo.TASKS if is_learnt(results, task)}
    few, chance, full = list[Test](), list[Test](), list[Test]()
    for one in OURS:
        for other in AGAINST:
            shots, whole = results.pairs(one, other)
            known = {key: gain for key, gain in shots.items() if key[0] in learnt}
            few.append(test_of(results, one, other, known, few=True))
            full.append(test_of(results, one, other, whole, few=False))
            if rest := {key: gain for key, gain in shots.items() if key[0] not in learnt}:
                test = test_of(results, one, other, rest, few=True)
                chance.append(replace(test, reasons=[NOT_LEARNT, *test.reasons]))
    what = "LS and EPO are better than the baselines"
    return [
        Claim(f"{what}, few-shot", "Table 2", [*few, *chance]),
        Claim(f"{what}, all data", "Table 3", full),
    ]


def test_of(results: Accuracies, one: str, other: str, pairs: Pairs, few: bool) -> Test:
    """Return the test that a method is better than another one on the tasks of these pairs."""
    name = f"{TITLES[one]} - {TITLES[other]}{on_tasks(pairs)}"
    return Test(name, pairs, unfair(results, one, other, few))


def is_learnt(results: Accuracies, task: str) -> bool:
    """Return whether a method is above the most frequent class with the most examples stored."""
    for shots in reversed(scl_moo.SHOTS):
        accuracies = [results.few_shot(task, shots, method).values() for method in TITLES]
        if means := [fmean(several) for several in accuracies if several]:
            return max(means) > scl_moo.MAJORITY.get(task, 0.0)
    return False


def on_tasks(pairs: Pairs) -> str:
    """Return ` on sst2, mrpc`, the tasks of the pairs; empty without pairs.

    The first part of a pair's key is the name of a task, or that of a cell, with the task in it.
    """
    words = {word for name, _ in pairs for word in name.split("-")}
    tasks = [task for task in scl_moo.TASKS if task in words]
    return f" on {', '.join(tasks)}" if tasks else ""


def unfair(results: Accuracies, one: str, other: str, few: bool) -> list[str]:
    """Return the conditions of a fair test that the settings of two methods do not meet."""
    cells = results.cells
    ours, plain = (
        (cells.few_shot("sst2", 50, m) if few else cells.full("sst2", m)).config
        for m in (one, other)
    )
    searched = [
        search
        for search in cells.searches()
        if search.cell.name.startswith("few-shot" if few else "full")
        and search.cell.name.endswith((f"-{one}", f"-{other.removesuffix(scl_moo.BALANCED)}"))
    ]
    reasons = [
        *pooling_reason(plain),
        *limit_reason(plain, "task"),
        *tuning_reason(results.results, searched, cells.tuned, scl_moo.NOT_TUNED),
    ]
    if plain.class_balanced != ours.class_balanced:
        reasons.append("only LS and EPO have class-balanced batches")
    if few and plain.epochs == scl_moo.EPOCHS:
        reasons.append(f"{plain.epochs} epochs, not until the loss is flat")
    return reasons
