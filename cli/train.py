"""What training modes do once their configuration stands: run, or show what is already there."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cli import tell
from multitask.config import RunConfig


def train(config: RunConfig, args: argparse.Namespace) -> int:
    """Train into the run's folder, or show a finished run again; prints a table at the end."""
    from multitask.run_folder import default_folder, finished_metrics, prepare, settle_linear

    folder = Path(args.output) if args.output else default_folder(config)
    config, reason = settle_linear(config, folder, args.overwrite)
    if args.verbose:
        print(f"linear layers on a CPU: {config.linear} ({reason})")
    if prepare(folder, config, args.resume, args.overwrite):
        result = finished_metrics(folder) or {}
        print(f"{folder} holds this run, finished; --overwrite would repeat it")
    else:
        from multitask.run import run

        print(f"run folder: {folder}", flush=True)
        try:
            result = run(config, folder, args.resume)
        except KeyboardInterrupt:
            return tell("interrupted; --resume goes on after the last finished epoch", 130)
    print()
    print(summary(result))
    print(f"\npredictions, metrics.json and checkpoint: {folder}")
    return 0


def summary(result: dict[str, Any]) -> str:
    """Dev metrics of the best epoch as a table."""
    from reports.tables import text_table

    rows = [
        [task, name, f"{value:.4f}"]
        for task, found in result["dev"].items()
        if isinstance(found, dict)
        for name, value in found.items()
    ]
    rows += [
        ["all", name, f"{result['dev'][name]:.4f}"]
        for name in ("overall", "overall_plain_mean")
        if name in result["dev"]
    ]
    return (
        text_table(["task", "metric", "dev"], rows)
        + f"\nbest epoch {result['best_epoch']} of {result['epochs']}, "
        f"{result['steps']} steps in {result['training_seconds']} s "
        f"({result['examples_per_second']} examples/s), {result['seconds']} s in all"
        + "".join(f"\n{n} steps: {status}" for status, n in result["combiner_steps"].items())
    )
