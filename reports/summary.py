"""The summary of a finished run: metrics of its best epoch, and statistics of its combiner."""

from __future__ import annotations

from typing import Any

from multitask.telemetry import ray_text
from reports.tables import text_table


def shown(value: float | None) -> str:
    """Format a score; None, as for a test set without labels, becomes an empty string."""
    return "" if value is None else f"{value:.4f}"


def summary(result: dict[str, Any]) -> str:
    """Return metrics of the best epoch, statistics of the combiner, and conflicts of tasks.

    There is a column for `test` if its labels are known.
    """
    further = {key: result[key] for key in ("before", "test") if key in result}
    rows = [
        [task, name, shown(value), *(shown(o.get(task, {}).get(name)) for o in further.values())]
        for task, found in result["dev"].items()
        if isinstance(found, dict)
        for name, value in found.items()
    ]
    rows += [
        ["all", name, f"{result['dev'][name]:.4f}", *("" for _ in further)]
        for name in ("overall", "overall_plain_mean")
        if name in result["dev"]
    ]
    lines = [
        text_table(["task", "metric", "dev", *further], rows),
        f"weights of epoch {result['best_epoch']} of {result['epochs']}, "
        f"{result['steps']} steps in {result['training_seconds']} s "
        f"({result['examples_per_second']} examples/s), {result['seconds']} s in all",
    ]
    if set(result["combiner_steps"]) != {"summed"}:
        lines += [f"{n} steps: {status}" for status, n in result["combiner_steps"].items()]
    lines += [ray_text(task, found) for task, found in result.get("rays", {}).items()]
    lines += [
        f"{pair}: in conflict in {found['conflict_rate']:.0%} of {found['steps']} steps measured, "
        f"mean cosine {found['mean_cosine']:.2f}"
        for pair, found in result.get("conflicts", {}).items()
    ]
    for task, found in further.get("before", {}).items():
        metric = next(iter(found))  # the metric that selects the best epoch
        if result["dev"][task][metric] < found[metric]:
            lines.append(f"{task}: the encoder was better before, by {metric} on dev")
    return "\n".join(lines)
