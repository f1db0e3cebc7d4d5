"""Flags of objectives with embeddings of labels (LaCon, LEAM, LSAN), and what they mean."""

from __future__ import annotations

import argparse
from typing import Any

from cli.protocol import check_one_vector
from cli.task_names import has_classes
from cli.values import COUNT, RATE, default, number
from multitask.choices import LABEL_STARTS, ONE_VECTOR, POOLING, TERMS
from multitask.values import MANY


def add_label_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("objectives with embeddings of labels")
    group.add_argument(
        "--label-temperature",
        type=RATE,
        metavar="X",
        help="of lacon: what cosines are divided by" + default("label_temperature"),
    )
    group.add_argument(
        "--label-heads",
        type=COUNT,
        metavar="N",
        help="of lacon: slices of the embeddings in which examples find their labels (default: 6, "
        "or as many fewer as fit the width)",
    )
    group.add_argument(
        "--label-spread",
        type=number(float, 0, MANY),
        metavar="X",
        help="of lacon: weight of the term that spreads the labels" + default("label_spread"),
    )
    group.add_argument(
        "--label-terms",
        nargs="+",
        choices=TERMS,
        metavar="TERM",
        help="of lacon: icl (each example finds its label), lcl (each label its examples), "
        "ler (labels are spread); default: all",
    )
    group.add_argument(
        "--label-start",
        choices=LABEL_STARTS,
        help="where embeddings of labels begin: at random, or at those of the classes' names"
        + default("label_start"),
    )
    group.add_argument(
        "--projection-layers",
        type=number(int, 0, 100),
        metavar="N",
        help="of lacon and projection: layers before the labels" + default("projection_layers"),
    )


def label_settings(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> dict[str, Any]:
    """The settings of the configuration that are not the flags' values as they stand."""
    if args.objective in ONE_VECTOR:
        check_one_vector(args, parser, tuple(t for t in tasks if has_classes(args, t)))
    alone = all(has_classes(args, task) for task in tasks)
    if args.objective in POOLING and args.pooling is not None and alone:
        parser.error(f"--pooling: expected another --objective, for {args.objective} has its own")
    if args.label_start == "names" and args.init is not None:
        parser.error("--label-start names and --init: expected one of them")
    if args.objective == "projection" and args.projection_layers == 0:
        parser.error("--projection-layers: expected 1 or more with --objective projection, found 0")
    if args.label_terms is None:
        return {}
    terms = tuple(term for term in TERMS if term in args.label_terms)
    if terms == ("ler",):
        parser.error("--label-terms: expected icl or lcl, or nothing teaches the encoder")
    if args.batch_size == 1 and "icl" not in terms:
        parser.error("--batch-size: expected 2 or more without icl among the --label-terms")
    for flag, term in (("label_spread", "ler"), ("label_heads", "icl")):
        if getattr(args, flag) is not None and term not in terms:
            shown = flag.replace("_", "-")
            parser.error(f"--{shown}: expected {term} among the --label-terms")
    return {"label_terms": terms}
