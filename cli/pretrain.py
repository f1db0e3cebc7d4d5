"""Train the encoder further before any task: run.py --mode pretrain --objective simcse

The training data are sentences, positive pairs, or labelled texts. --init RUN starts another run
from the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from cli.multitask import add_task_list, distinct_tasks
from cli.task_names import ChosenTasks
from cli.training import config_of, settings_file, train, training_flags
from common.errors import SettingsError
from common.settings import default_of
from multitask.optimizer import Optimizer
from multitask.settings.methods import methods, pretrains
from multitask.settings.presets import preset_values
from pretrain.objectives import PretrainObjective
from tasks import CS224N, TASK_NAMES
from tasks.objectives import Objective
from tasks.registry import SAME_MEANING


def add_flags(parser: Any) -> None:
    parser.flags = flags = training_flags(
        parser,
        "pretrain",
        fits=lambda one: not issubclass(one, Objective),
        defaults={
            **PretrainObjective.defaults,
            "head_lr": default_of(Optimizer.by_key()["head_lr"]),  # its source is about tasks
            "class_balanced": "on with objectives of classes",
        },
        role_helps={"objective": "training objective"},
    )
    add_task_list(
        flags,
        CS224N,
        "whose training text is used",
        "sst qqp sts; qqp sts with objectives of pairs; sst with those of classes; none with "
        "--task, --text or --nli",
    )
    shared = [name for name in TASK_NAMES if name not in CS224N]
    flags.add_task_options(shared)


def main(args: argparse.Namespace, parser: Any) -> int:
    tasks, columns = chosen_tasks(args, parser), args.text_column or ()
    check_columns(args, parser, columns)
    args.text_column = None
    given = dict(zip(("text_column", "other_column"), columns, strict=False))
    config = config_of(args, parser, tasks, mode="pretrain", **given)
    return train(config, args)


def check_columns(args: argparse.Namespace, parser: Any, columns: Sequence[str]) -> None:
    """Raise SettingsError for too few or too many columns of `--text`."""
    objective = methods("objective", parser.outside).get(args.objective)
    pairs = args.text is not None and getattr(objective, "of_pairs", False)
    if pairs and len(columns) != 2:
        wanted = f"two with objective {args.objective}"
        raise SettingsError(f"text_column: expected {wanted}, found {len(columns)}")
    if pairs and len(set(columns)) == 1:
        raise SettingsError(f"text_column: expected two, found {columns[0]} twice")
    if not pairs and len(columns) > 1:
        wanted = f"one with objective {args.objective}"
        raise SettingsError(f"text_column: expected {wanted}, found {len(columns)}")


def chosen_tasks(args: argparse.Namespace, parser: Any) -> ChosenTasks:
    """Return the tasks whose text is used, or none if the text is that of a file."""
    from_file = settings_file(args)
    preset = preset_values(args.preset or from_file.get("preset"), "pretrain")
    default_objective = from_file.get("objective", preset.get("objective"))
    args.objective = args.objective or default_objective
    args.text = args.text or from_file.get("text")
    if args.objective is None:
        names = ", ".join(name for name, one in methods("objective").items() if pretrains(one))
        raise SettingsError(f"objective: expected one of {names}, found none")
    objective = methods("objective", parser.outside).get(args.objective)
    if args.text is not None or getattr(objective, "needs_file", False):
        if args.tasks or args.further:
            flag = "text" if args.text is not None else f"objective {args.objective}"
            raise SettingsError(f"tasks: expected none with {flag}, which reads a file")
        return ChosenTasks()
    default: tuple[str, ...] = CS224N
    if getattr(objective, "of_classes", False):
        default = ("sst",)
    elif getattr(objective, "of_pairs", False):
        default = tuple(SAME_MEANING)
    return distinct_tasks(args, parser, default)
