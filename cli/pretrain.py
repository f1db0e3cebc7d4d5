"""Train the encoder further, before any task: run.py --mode pretrain --objective simcse

On sentences, on pairs that belong together, or on the classes of labelled texts. What a run has
learnt is used by --init RUN.
"""

from __future__ import annotations

import argparse

from cli import classes
from cli.flags import add_training_flags
from cli.multitask import add_task_list, distinct_tasks
from cli.pretrain_checks import check_objective
from cli.run_config import check_training_flags, training_config
from cli.train import train
from cli.values import RATE, default, path
from multitask.choices import PAIRS_OF_TEXTS
from multitask.rules import PAIRED
from pretrain import DEFAULTS
from tasks import CS224N

# Plain copies of the objectives' names, held equal to them by a test.
TEXTS = {
    "simcse": "each sentence finds its other view, which dropout makes, in the batch",
    "nli": "each premise finds what follows from it; what contradicts it is a hard negative",
    "pairs": "each text finds the one that belongs to it (Quora duplicates, STS from 4 on, --text)",
    "ranking": "as pairs, with sentences from elsewhere as further negatives",
    "triplet": "a text is nearer to the one that belongs to it than to one from elsewhere",
}
OBJECTIVES = TEXTS | classes.OBJECTIVES


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--objective",
        choices=tuple(OBJECTIVES),
        required=True,
        help="; ".join(f"{name}: {text}" for name, text in OBJECTIVES.items()),
    )
    add_task_list(parser, CS224N, "whose training text is used")
    group = parser.add_argument_group("objective")
    group.add_argument(
        "--nli",
        type=path,
        metavar="FILE",
        help="of --objective nli: a CSV or TSV file with columns sent0, sent1, hard_neg, or "
        "sentence1, sentence2, gold_label (entailment, neutral, contradiction)",
    )
    group.add_argument(
        "--text",
        type=path,
        metavar="FILE",
        help="instead of tasks' text, of --objective simcse one sentence a line, or a .csv, .tsv, "
        ".jsonl or .parquet file with --text-column; of pairs, ranking and triplet such a file of "
        "texts that belong together",
    )
    group.add_argument(
        "--text-column",
        nargs="+",
        metavar="NAME",
        help="column or field of --text; of pairs, ranking and triplet two, such as question and "
        "answer",
    )
    group.add_argument(
        "--contrast-temperature",
        type=RATE,
        metavar="T",
        help="what cosines are divided by" + default("contrast_temperature"),
    )
    group.add_argument(
        "--margin",
        type=RATE,
        metavar="X",
        help="of triplet, in cosines, and class-triplet, in distances" + default("margin"),
    )
    group.add_argument(
        "--projection",
        action="store_true",
        help="put a layer between embeddings and objective, in training only (SimCSE's MLP)",
    )
    classes.add_class_flags(parser)
    add_training_flags(parser, DEFAULTS, heads=False)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = chosen_tasks(args, parser)
    check_objective(args, parser)
    settings = classes.class_settings(args, parser)
    check_training_flags(args, parser, tasks)
    if args.freeze_encoder or args.probe_epochs:
        parser.error(
            "--mode pretrain: expected neither --freeze-encoder nor --probe-epochs, "
            "for the encoder is what is trained"
        )
    one, other = [*(args.text_column or ()), None, None][:2]
    settings |= {"text_column": one, "other_column": other}
    config = training_config(args, DEFAULTS, mode="pretrain", tasks=tasks, **settings)

    from pretrain.run_tasks import build_and_check

    return train(config, args, build_and_check)


def chosen_tasks(args: argparse.Namespace, parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """The tasks whose text is used; those that an objective cannot use are refused."""
    name, given = args.objective, bool(args.tasks or args.further)
    if given and (name == "nli" or args.text is not None):
        flag = "--objective nli" if name == "nli" else "--text"
        parser.error(f"--tasks: expected none with {flag}, whose text is the file's")
    if args.text is not None:
        return ()
    default: tuple[str, ...] = CS224N
    if name in classes.OBJECTIVES:
        default = ("sst",)
    elif name in PAIRS_OF_TEXTS:
        default = PAIRED
    args.default_tasks = default
    tasks = distinct_tasks(args, parser)
    if name in classes.OBJECTIVES:
        classes.check_class_tasks(args, parser, tasks)
    elif name in PAIRS_OF_TEXTS:
        for task in tasks:
            if task not in PAIRED:
                parser.error(
                    f"--objective {name}: expected tasks of pairs ({', '.join(PAIRED)}), "
                    f"found {task}"
                )
    return tasks
