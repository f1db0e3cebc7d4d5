"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from studies.claims import (
    Claim,
    PairReasons,
    Pairs,
    balance_reason,
    claim_of,
    end_of_grid_reason,
    learnt_by,
    limit_reason,
    pooling_reason,
    tuning_reason,
)
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import PRINTED, TITLES, Accuracies
from studies.tuning import searches_of

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)
BETTER = "LS and EPO are better than the baselines"
FALLS = "the gain over cross-entropy is larger with fewer examples"


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, and most with few examples."""
    pairs = {(one, other): results.pairs(one, other) for one in OURS for other in AGAINST}
    few, full = ({names: both[place] for names, both in pairs.items()} for place in (0, 1))
    over_ce = (names for names in pairs if names[1].removesuffix(scl_moo.BALANCED) == "ce")
    falls = {names: results.falls(*names) for names in over_ce}
    return [
        method_claim(results, f"{BETTER}, few-shot", few, few=True),
        method_claim(results, f"{BETTER}, all data, several sets", full, few=False),
        method_claim(results, FALLS, falls, few=True),
    ]


def method_claim(
    results: Accuracies, text: str, differences: Mapping[tuple[str, str], Pairs], few: bool
) -> Claim:
    """Return a claim about few examples or about all, from the differences of two methods."""
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
    table, printed = ("Table 2", PRINTED["few_shot"]) if few else ("Table 3", PRINTED["full"])
    known = learnt_by(results.stored, every, results.of)
    return claim_of(text, table, lines, (), known, further, printed)


def unfair(results: Accuracies, one: str, other: str, few: bool, pairs: Pairs) -> list[str]:
    """Return the conditions of a fair test of these pairs that two methods do not meet."""
    cells, tasks = results.cells, {task for task, _ in pairs}
    ours, plain = (
        (cells.few_shot("sst2", 50, m) if few else cells.full("sst2", m)).config
        for m in (one, other)
    )
    kind = "few-shot" if few else "full"
    tested = tuple(
        f"few-shot-{task}-{shots}-" if few else f"full-{task}-"
        for task in tasks
        for shots in results.tested_shots(task)
    )
    mine, rivals = (
        [one for one in searches_of(cells.searches, kind, m) if one.cell.name.startswith(tested)]
        for m in (one, other)
    )
    tuned = any(name.startswith(kind) for name in cells.tuned)
    of_control = tuned and other in scl_moo.CONTROLS
    untuned = scl_moo.CONTROL_NOT_TUNED if of_control else scl_moo.NOT_TUNED
    reasons = [
        *pooling_reason(plain),
        *limit_reason(plain, "task"),
        *tuning_reason(results.stored, mine + rivals, cells.tuned, untuned),
        *balance_reason(ours, plain, "LS and EPO have"),
    ]
    if few and plain.epochs <= scl_moo.EPOCHS:
        reasons.append(f"{plain.epochs} epochs, not until the loss is flat")
    return [*reasons, *end_of_grid_reason(results.stored, mine, rivals, cells.tuned, pairs)]
