"""Mended faults of the code, and which kept cells they touch: those are left out and run again.

Whoever mends a fault that changes what a run computes adds it to `FAULTS`, with the moment of the
mend. Nothing else has to be done: studies leave the cells out of their tables, say so, and run them
again, and so with every cell that starts from a run the fault touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from multitask.config import RunConfig

Config = Mapping[str, Any]  # as JSON; one of an older version lacks keys


@dataclass(frozen=True)
class Fault:
    """What was wrong, in a clause, with cells whose configuration it `touches`.

    Those made from `since` on and before `mended`, each a date or a date with a time, in UTC. A
    date without a time, as older cells have it, stands for the beginning of its day.
    """

    what: str
    mended: str
    touches: Callable[[Config], bool]
    since: str = ""

    @property
    def title(self) -> str:
        day = datetime.fromisoformat(self.mended)
        return f"{self.what} (mended {day.day} {day:%B %Y})"


def with_smart(config: Config) -> bool:
    return any(weight > 0 for weight in (config.get("smart_weight") or {}).values())


def of_equal_sizes(config: Config) -> bool:
    """Trained on the largest task first, where a limit may make tasks equally large."""
    largest = config.get("schedule") == "first-then-joint" and not config.get("first_task")
    return bool(config.get("limit")) and (config.get("sampling") == "hybrid" or largest)


def of_texts(config: Config) -> bool:
    """Pre-trained on the texts of so many examples a task."""
    objectives = ("simcse", "pairs", "ranking", "triplet")
    limited = bool(config.get("limit")) and config.get("mode") == "pretrain"
    return limited and config.get("objective") in objectives


def of_another_seed(config: Config) -> bool:
    """One seed is a random start like any other; only a second one repeats it."""
    return config.get("mode") != "pretrain" and config.get("seed") != RunConfig.seed


def with_bees_similarity(config: Config) -> bool:
    """A row of BEES' tables that trains similarity: known by the paper's rate."""
    supervised = config.get("mode") in ("single", "multitask")
    ours = supervised and config.get("lr") == 2e-5 and "sts" in config.get("tasks", ())
    return ours and config.get("similarity_scale", 1.0) == 1.0


FAULTS = (
    Fault(
        "pre-training read --limit texts in all, not those of --limit examples of each task",
        mended="2026-11-22T07:11:15+00:00",
        touches=of_texts,
        since="2026-11-21T18:40:35+00:00",
    ),
    Fault(
        "SMART's noise was added to the word embeddings before their LayerNorm",
        mended="2026-11-23T04:31:00+00:00",
        touches=with_smart,
    ),
    Fault(
        "of tasks cut to one size by --limit the first was trained first, not the largest",
        mended="2026-11-23T05:21:00+00:00",
        touches=of_equal_sizes,
    ),
    Fault(
        "in BEES' rows similarity's squared error was that of labels from 0 to 1, not from 0 to 5",
        mended="2026-11-23T00:00:00+00:00",
        touches=with_bees_similarity,
    ),
    Fault(
        "heads began alike with every seed",
        mended="2026-11-21T19:45:15+00:00",
        touches=of_another_seed,
    ),
)


def fault_of(config: Config, made: str) -> Fault | None:
    """The fault with which a cell of this configuration was made, or a run that it starts from.

    `made` is when, as in the cell's environment; of a cell without it the worst is assumed.
    """
    for one in FAULTS:
        if (not made or one.since <= made < one.mended) and one.touches(config):
            return one
    return None


def left_out(faults: Iterable[Fault]) -> str:
    """A sentence on how many runs are left out and why, given the fault of each; or nothing."""
    counts = Counter(one.title for one in faults)
    if not counts:
        return ""
    reasons = "; ".join(f"{title}: {count}" for title, count in counts.items())
    return (
        f"Kept runs left out because of mended faults, in them or in a run that they start from: "
        f"{counts.total()}. {reasons}. The command runs them again."
    )
