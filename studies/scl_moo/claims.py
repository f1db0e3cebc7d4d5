"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from statistics import fmean

from studies.claims import Claim, Pairs, Test, limit_reason, pooling_reason, tuning_reason
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import TITLES, Accuracies

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)


# Accuracy of always saying the most frequent class, on GLUE's dev files, which are test here.
MAJORITY = {"sst2": 0.509, "qnli": 0.505, "mrpc": 0.708, "rte": 0.527, "cola": 0.689}


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, with few examples and with all.

    With few examples, tasks that no method has learnt have tests of their own.
    """
    tests: tuple[list[Test], ...] = [], [], []  # few-shot, few-shot and not learnt, all data
    learnt = [task for task in scl_moo.TASKS if is_learnt(results, task)]
    for one in OURS:
        for other in AGAINST:
            few, full = results.pairs(one, other)
            known = {key: gain for key, gain in few.items() if key[0] in learnt}
            chance = {key: gain for key, gain in few.items() if key[0] not in learnt}
            several = ((known, True, ()), (chance, True, (NOT_LEARNT,)), (full, False, ()))
            for found, (pairs, is_few, more) in zip(tests, several, strict=True):
                name = f"{TITLES[one]} - {TITLES[other]}{on_tasks(pairs)}"
                reasons = [*more, *unfair(results, one, other, is_few)]
                if pairs or not more:
                    found.append(Test(name, pairs, reasons))
    name = "LS and EPO are better than the baselines"
    return [
        Claim(f"{name}, few-shot", "Table 2", [*tests[0], *tests[1]]),
        Claim(f"{name}, all data", "Table 3", tests[2]),
    ]


NOT_LEARNT = "no method is above always saying the most frequent class"


def is_learnt(results: Accuracies, task: str) -> bool:
    """Return whether a method is above the most frequent class with the most examples stored."""
    for shots in reversed(scl_moo.SHOTS):
        accuracies = [results.few_shot(task, shots, method).values() for method in TITLES]
        if means := [fmean(several) for several in accuracies if several]:
            return max(means) > MAJORITY.get(task, 0.0)
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
