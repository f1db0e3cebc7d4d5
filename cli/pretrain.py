"""Train the encoder further before any task: run.py --mode pretrain --objective simcse

The training data are sentences, positive pairs, or labelled texts. --init RUN starts another run
from the result.
"""

from __future__ import annotations

import argparse

from cli.flags import Parser
from cli.training import Chosen, add_tasks, base_of, config_of, several_tasks, train, training_flags
from common.errors import SettingsError
from common.settings import methods
from losses.objectives import PretrainObjective
from multitask.settings.config import as_mapping
from tasks import CS224N, SAME_MEANING


def add_flags(parser: Parser) -> None:
    training_flags(parser, "pretrain")
    add_tasks(
        parser,
        "sst qqp sts; qqp sts with objectives of pairs; sst with those of classes; none with "
        "--text or --nli",
    )


def main(args: argparse.Namespace, parser: Parser) -> int:
    return train(config_of(args, parser, chosen_tasks(args), "pretrain"), args)


def chosen_tasks(args: argparse.Namespace) -> Chosen:
    """Return the tasks whose text is used, or none if the text is that of a file."""
    usual = as_mapping(base_of(args, "pretrain").get("objective"))
    known = methods(PretrainObjective)
    objective = known.get(args.objective or str(usual.get("name")))
    if objective is None:
        raise SettingsError(f"objective: mode pretrain needs one of {', '.join(known)}")
    if args.text or usual.get("text") or objective.needs_file:
        return tuple(args.tasks or ())
    if objective.of_classes:
        return several_tasks(args, ("sst",))
    return several_tasks(args, tuple(SAME_MEANING) if objective.of_pairs else CS224N)
