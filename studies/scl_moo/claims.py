"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from studies.claims import Claim, Pairs, Test, limit_reason, pooling_reason, tuning_reason
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import TITLES, Accuracies

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, with few examples and with all."""
    found = []
    for number, (where, source) in enumerate((("few-shot", "Table 2"), ("all data", "Table 3"))):
        tests = []
        for one in OURS:
            for other in AGAINST:
                pairs = results.pairs(one, other)[number]
                name = f"{TITLES[one]} - {TITLES[other]}{on_tasks(pairs)}"
                tests.append(Test(name, pairs, unfair(results, one, other, where == "few-shot")))
        found.append(Claim(f"LS and EPO are better than the baselines, {where}", source, tests))
    return found


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
