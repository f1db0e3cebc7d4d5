"""What training modes do once their configuration stands: run, or show what is already there."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from cli.training import run_control
from minbert.front_door import tell
from minbert.progress import speaks
from multitask.config import RunConfig


def train(config: RunConfig, args: argparse.Namespace) -> int:
    """Train into the run's folder, or show a finished run again; prints a table at the end."""
    from multitask.run_folder import default_folder

    folder = Path(args.output) if args.output else default_folder(config)
    if not speaks():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (open to the end of the process)
    if args.dry_run:
        return show_plan(config)
    try:
        from multitask.run import complete

        result = complete(config, folder, run_control(args))
    except KeyboardInterrupt:
        told = "interrupted; --resume goes on from the last checkpoint, where there is one"
        return tell("run.py", told, 130)
    print()
    print(summary(result))
    print(f"\npredictions, metrics.json and checkpoint: {folder}")
    return 0


def shown(value: float | None) -> str:
    """A figure; nothing where there is none, as of a test without labels."""
    return "" if value is None else f"{value:.4f}"


def show_plan(config: RunConfig) -> int:
    """Examples, passes, steps and expected time of every epoch and task, without training."""
    from multitask.dry_run import planned
    from reports.tables import text_table

    rows = planned(config)
    header = ["epoch", "task", "examples", "passes", "batches", "steps", "expected time"]
    print(text_table(header, rows))
    return 0


def summary(result: dict[str, Any]) -> str:
    """Metrics of the best epoch, what the combiner did, and which tasks were in conflict.

    `test` has a column where its labels are known.
    """
    from multitask.rays import ray_text
    from reports.tables import text_table

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
        metric = next(iter(found))  # the one that selects
        if result["dev"][task][metric] < found[metric]:
            lines.append(f"{task}: the encoder was better before, by {metric} on dev")
    return "\n".join(lines)
