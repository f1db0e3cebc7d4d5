"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from studies.claims import (
    Claim,
    Test,
    learnt_first,
    learnt_tasks,
    limit_reason,
    pooling_reason,
    tuning_reason,
)
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import TITLES, Accuracies

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, with few examples and with all."""
    few, full = list[Test](), list[Test]()
    for one in OURS:
        for other in AGAINST:
            name = f"{TITLES[one]} - {TITLES[other]}"
            shots, whole = results.pairs(one, other)
            few.append(Test(name, shots, unfair(results, one, other, few=True)))
            full.append(Test(name, whole, unfair(results, one, other, few=False)))
    every = [(t, results.full(t, m)) for t in scl_moo.TASKS for m in TITLES]
    some = [
        (task, results.few_shot(task, shots, method))
        for task in scl_moo.TASKS
        for shots in scl_moo.SHOTS
        for method in TITLES
    ]
    what = "LS and EPO are better than the baselines"
    return [
        Claim(f"{what}, few-shot", "Table 2", learnt_first(few, learnt_tasks(some))),
        Claim(f"{what}, all data", "Table 3", learnt_first(full, learnt_tasks(every))),
    ]


def unfair(results: Accuracies, one: str, other: str, few: bool) -> list[str]:
    """Return the conditions of a fair test that the settings of two methods do not meet."""
    cells = results.cells
    ours, plain = (
        (cells.few_shot("sst2", 50, m) if few else cells.full("sst2", m)).config
        for m in (one, other)
    )
    searched = [
        search
        for search in cells.searches
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
    if few and plain.epochs <= scl_moo.EPOCHS:
        reasons.append(f"{plain.epochs} epochs, not until the loss is flat")
    return reasons
