"""Train the encoder further before any task: run.py --mode pretrain --objective simcse

The training data are sentences, positive pairs, or labelled texts. --init RUN starts another run
from the result.
"""

from __future__ import annotations

import argparse
from typing import Any

from cli.multitask import add_task_list, distinct_tasks
from cli.training import Chosen, config_of, settings_file, train, training_flags
from common.errors import SettingsError
from common.settings import methods
from losses.objectives import PretrainObjective
from multitask.settings.config import as_mapping
from multitask.settings.presets import preset_settings
from tasks import CS224N, SAME_MEANING, TASK_NAMES


def add_flags(parser: Any) -> None:
    parser.flags = flags = training_flags(
        parser,
        "pretrain",
        lambda one: one.pretrains,
        defaults={"batch_size": "64", "epochs": "1", "lr": "3e-5", "class_balanced": "on"},
    )
    add_task_list(
        flags,
        CS224N,
        "whose training text is used",
        "sst qqp sts; qqp sts with objectives of pairs; sst with those of classes; none with "
        "--text or --nli",
    )
    shared = [name for name in TASK_NAMES if name not in CS224N]
    flags.add_task_options(shared)


def main(args: argparse.Namespace, parser: Any) -> int:
    return train(config_of(args, parser, chosen_tasks(args), mode="pretrain"), args)


def chosen_tasks(args: argparse.Namespace) -> Chosen:
    """Return the tasks whose text is used, or none if the text is that of a file."""
    from_file = settings_file(args)
    preset = args.preset or from_file.get("preset")
    of_preset = preset_settings(preset, "pretrain").get("objective") if preset else None
    usual = as_mapping(from_file.get("objective") or of_preset or {})
    name = args.objective or usual.get("name")
    known = methods(PretrainObjective)
    if name not in known:
        raise SettingsError(f"objective: mode pretrain needs one of {', '.join(known)}")
    objective = known[name]
    if args.text or usual.get("text") or objective.needs_file:
        if args.tasks:
            raise SettingsError(f"tasks: none beside a file of texts or objective {name}")
        return ()
    default: tuple[str, ...] = CS224N
    if objective.of_classes:
        default = ("sst",)
    elif objective.of_pairs:
        default = tuple(SAME_MEANING)
    return distinct_tasks(args, default)
