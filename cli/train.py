"""What training modes do once their configuration stands: run, or show what is already there."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from cli.training import run_control
from common.entry_point import tell
from common.progress import is_main_process
from multitask.config import RunConfig


def train(config: RunConfig, args: argparse.Namespace) -> int:
    """Train into the run's folder, or show a finished run again; prints a table at the end."""
    from multitask.run_folder import default_folder

    folder = Path(args.output) if args.output else default_folder(config)
    if not is_main_process():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (open to the end of the process)
    control = run_control(args)
    if args.dry_run:
        return show_plan(config)
    try:
        from multitask.run import complete

        result = complete(config, folder, control)
    except KeyboardInterrupt:
        told = "interrupted; --resume goes on from the last checkpoint, where there is one"
        return tell("run.py", told, 130)
    from reports.summary import summary

    print()
    print(summary(result))
    print(f"\npredictions, metrics.json and checkpoint: {folder}")
    return 0


def show_plan(config: RunConfig) -> int:
    """Examples, passes, steps and expected time of every epoch and task, without training."""
    from multitask.dry_run import planned
    from multitask.presets import preset_of
    from reports.tables import text_table

    if config.preset is not None:
        preset = preset_of(config.preset)
        used = {key: str(value) for key, value in config.flat().items()}
        settings = [
            [key, used.get(key, getattr(used.get(key), "name", "")), source]
            for key, (_, source) in preset.of_mode(config.mode).items()
        ]
        print(f"preset {config.preset}: {preset.paper}")
        print(text_table(["setting", "this run", "of the paper"], settings) + "\n")
    rows = planned(config)
    header = ["epoch", "task", "examples", "passes", "batches", "steps", "expected time"]
    print(text_table(header, rows))
    return 0
