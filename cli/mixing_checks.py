"""Refuses settings of sampler, schedule and combiner that make no sense together."""

from __future__ import annotations

import argparse
from typing import Any

from multitask.combiners import ONE_AT_A_TIME, POSITIVE, PREFERRING
from multitask.config import RunConfig


def check_owners(
    args: argparse.Namespace, parser: argparse.ArgumentParser, settings: dict[str, Any]
) -> None:
    """Refuse flags of a method that is not used."""
    owners = {
        "temperature": ("sampling", ("temperature",)),
        "size_cap": ("sampling", ("temperature",)),
        "cones": ("combiner", ("pareto-mtl",)),
        "preference": ("combiner", PREFERRING),
    }
    for name, (setting, values) in owners.items():
        if getattr(args, name, None) is not None and settings[setting] not in values:
            flag = name.replace("_", "-")
            parser.error(
                f"--{flag}: expected --{setting} {' or '.join(values)}, found {settings[setting]}"
            )


def check_schedule(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    settings: dict[str, Any],
    tasks: tuple[str, ...],
) -> None:
    """Refuse pairings of sampler and schedule that make no sense, with the reason."""
    hybrid, first = settings["sampling"] == "hybrid", settings["schedule"] == "first-then-joint"
    if hybrid and first:
        parser.error(
            "--sampling hybrid and --schedule first-then-joint: expected one of them, "
            "for hybrid begins with the largest task by itself"
        )
    if (hybrid or first) and len(tasks) < 2:
        name = "--sampling hybrid" if hybrid else "--schedule first-then-joint"
        parser.error(f"{name}: expected two tasks or more, found {tasks[0]} alone")
    if getattr(args, "first_task", None) not in (None, *tasks):
        parser.error(f"--first-task: expected one of {', '.join(tasks)}, found {args.first_task}")
    given = getattr(args, "first_epochs", None)
    if given is not None and not (hybrid or first):
        parser.error(
            "--first-epochs: expected --sampling hybrid or --schedule first-then-joint, found "
            f"--sampling {settings['sampling']} --schedule {settings['schedule']}"
        )
    if getattr(args, "first_task", None) is not None and not (hybrid or first):
        parser.error(
            "--first-task: expected --sampling hybrid or --schedule first-then-joint, found "
            f"--sampling {settings['sampling']} --schedule {settings['schedule']}"
        )
    plain = RunConfig(mode="", tasks=())
    epochs = args.epochs or plain.epochs
    if (hybrid or first) and (given or plain.first_epochs) >= epochs:
        parser.error(
            f"--first-epochs: expected fewer than --epochs {epochs}, "
            f"found {given or plain.first_epochs}"
        )
    if settings["schedule"] == "individual" and getattr(args, "batches_per_step", None):
        parser.error("--batches-per-step: expected --schedule joint, found individual")


def check_representation(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    settings: dict[str, Any],
    objectives: dict[str, tuple[str, ...]],
) -> None:
    """Refuse to combine at the embeddings what has no batch in common."""
    if settings["gradients"] != "representation":
        return
    every = [name for several in objectives.values() for name in several]
    if len(objectives) > 1 or len(every) < 2:
        parser.error(
            "--gradients representation: expected one task with several objectives, such as "
            "--mode single --task qqp --qqp-loss with-contrastive, for only these share a "
            f"batch, found {', '.join(every)}"
        )
    if settings["batches_per_step"] > 1:
        parser.error(
            "--gradients representation: expected --batches-per-step 1, "
            f"found {settings['batches_per_step']}"
        )
    for flag in ("micro_batch", "freeze_encoder"):
        if getattr(args, flag):
            shown = flag.replace("_", "-")
            parser.error(f"--gradients representation and --{shown}: expected one of them")


def check_combiner(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    settings: dict[str, Any],
    objectives: dict[str, tuple[str, ...]],
) -> None:
    """Refuse a combiner that would never see two objectives or never see a shared parameter."""
    name, every = settings["combiner"], [o for several in objectives.values() for o in several]
    at_once = max(len(several) for several in objectives.values())
    if settings["batches_per_step"] > 1:
        at_once = len(every)
    if name == "sum":
        return
    if len(every) < 2:
        parser.error(f"--combiner {name}: expected two objectives or more, found {every[0]} alone")
    if at_once < 2 and name not in ONE_AT_A_TIME:
        parser.error(
            f"--combiner {name}: expected steps with two objectives or more, found "
            f"--schedule {settings['schedule']} --batches-per-step {settings['batches_per_step']}"
        )
    if args.freeze_encoder:
        parser.error(f"--combiner {name}: expected a shared encoder, found --freeze-encoder")


def checked_preference(
    wish: list[float],
    parser: argparse.ArgumentParser,
    combiner: str,
    objectives: dict[str, tuple[str, ...]],
) -> tuple[float, ...]:
    """The preference, adding up to 1; refused unless it has a fitting number an objective."""
    names = [name for several in objectives.values() for name in several]
    shown = " ".join(f"{weight:g}" for weight in wish)
    if len(wish) != len(names):
        parser.error(
            f"--preference: expected {len(names)} numbers, for {', '.join(names)}, found {shown}"
        )
    if not sum(wish) > 0:
        parser.error(f"--preference: expected a number above 0 among them, found {shown}")
    if combiner in POSITIVE and not all(weight > 0 for weight in wish):
        parser.error(
            f"--preference: expected numbers above 0 for --combiner {combiner}, found {shown}"
        )
    return tuple(weight / sum(wish) for weight in wish)
