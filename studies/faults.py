"""Fixed faults of the code, and the stored cells which they affect.

After fixing a fault that changes what a run computes, add it to `FAULTS` with the time of the fix.
Studies then omit the affected cells from their tables, report this, and run them again. The same
holds for every cell that starts from an affected run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from multitask.config import RunConfig

Config = Mapping[str, Any]  # as JSON; older versions lack some keys


@dataclass(frozen=True)
class Fault:
    """A fixed fault, its description in a clause, and the configurations that it `affects`.

    It affects cells made from `since` on and before `fixed`, dates with or without a time, in UTC.
    A date without a time, as in older cells, means the beginning of its day.
    """

    description: str
    fixed: str
    affects: Callable[[Config], bool]
    since: str = ""

    @property
    def title(self) -> str:
        day = datetime.fromisoformat(self.fixed)
        return f"{self.description} (fixed {day.day} {day:%B %Y})"


def with_smart(config: Config) -> bool:
    return any(weight > 0 for weight in (config.get("smart_weight") or {}).values())


def of_equal_sizes(config: Config) -> bool:
    """Return whether the largest task came first under a limit, which may equalise sizes."""
    largest = config.get("schedule") == "first-then-joint" and not config.get("first_task")
    return bool(config.get("limit")) and (config.get("sampling") == "hybrid" or largest)


def pretrains_on_limited_texts(config: Config) -> bool:
    """Return whether a run pre-trained on texts of a limited number of examples per task."""
    objectives = ("simcse", "pairs", "ranking", "triplet")
    limited = bool(config.get("limit")) and config.get("mode") == "pretrain"
    return limited and config.get("objective") in objectives


def of_another_seed(config: Config) -> bool:
    """Return whether the seed is not the default: only a further seed repeats its start."""
    return config.get("mode") != "pretrain" and config.get("seed") != RunConfig.seed


def with_bees_similarity(config: Config) -> bool:
    """Return whether a BEES row trains similarity; the paper's learning rate identifies it."""
    supervised = config.get("mode") in ("single", "multitask")
    ours = supervised and config.get("lr") == 2e-5 and "sts" in config.get("tasks", ())
    return ours and config.get("similarity_scale", 1.0) == 1.0


FAULTS = (
    Fault(
        "pre-training read --limit texts in all, not those of --limit examples of each task",
        fixed="2026-11-22T07:11:15+00:00",
        affects=pretrains_on_limited_texts,
        since="2026-11-21T18:40:35+00:00",
    ),
    Fault(
        "SMART's noise was added to the word embeddings before their LayerNorm",
        fixed="2026-11-23T04:31:00+00:00",
        affects=with_smart,
    ),
    Fault(
        "of tasks cut to one size by --limit the first was trained first, not the largest",
        fixed="2026-11-23T05:21:00+00:00",
        affects=of_equal_sizes,
    ),
    Fault(
        "in BEES' rows similarity's squared error was that of labels from 0 to 1, not from 0 to 5",
        fixed="2026-11-23T00:00:00+00:00",
        affects=with_bees_similarity,
    ),
    Fault(
        "heads began alike with every seed",
        fixed="2026-11-21T19:45:15+00:00",
        affects=of_another_seed,
    ),
)


def find_fault(config: Config, made: str) -> Fault | None:
    """Return the fault that affects a cell of this configuration, or None.

    `made` is the date in the cell's environment; without a date, every fault counts.
    """
    for one in FAULTS:
        if (not made or one.since <= made < one.fixed) and one.affects(config):
            return one
    return None


def left_out_notice(faults: Iterable[Fault]) -> str:
    """Return a sentence with the number of omitted runs per fault; empty without faults."""
    counts = Counter(one.title for one in faults)
    if not counts:
        return ""
    reasons = "; ".join(f"{title}: {count}" for title, count in counts.items())
    return (
        f"Stored runs left out because of fixed faults, in them or in a run that they start from: "
        f"{counts.total()}. {reasons}. The command runs them again."
    )
