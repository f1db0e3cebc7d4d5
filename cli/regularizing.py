"""Flags of the terms that a task's loss may get: SMART, the proximal point method, R-Drop."""

from __future__ import annotations

import argparse
import math
from typing import Any

from cli.values import COUNT, RATE, default, number
from multitask.choices import DROPOUTS, NORMS, PLACES, VARIANTS
from multitask.rules import BF16_RADIUS

WEIGHTS = {
    "smart": "steadiness under adversarial noise (SMART)",
    "proximal": "nearness to a running mean of the model (Bregman proximal point)",
    "r_drop": "agreement of two passes with different dropout (R-Drop)",
}


def add_regularizer_flags(parser: argparse.ArgumentParser) -> None:
    """Weights of each term, for all tasks or by task, and what else SMART wants to know."""
    group = parser.add_argument_group("regularisation")
    for name, text in WEIGHTS.items():
        group.add_argument(
            f"--{name.replace('_', '-')}-weight",
            type=task_weight,
            nargs="+",
            metavar="W",
            help=f"weight of {text}: one for all tasks, or TASK=W, such as sst=1 sts=3",
        )
    group.add_argument(
        "--proximal-momentum",
        type=number(float, 0, 1),
        metavar="X",
        help="of the running mean" + default("proximal_momentum"),
    )
    smart = parser.add_argument_group("SMART's noise")
    smart.add_argument(
        "--smart-variant",
        choices=VARIANTS,
        help="noise of one norm at every token, as public implementations do, or projected into a "
        "ball, as in the paper" + default("smart_variant"),
    )
    smart.add_argument(
        "--smart-place",
        choices=PLACES,
        help="add the noise to the output of the embedding module, as public implementations do, "
        "or to the word embeddings, before the module's LayerNorm" + default("smart_place"),
    )
    smart.add_argument(
        "--smart-steps",
        type=COUNT,
        metavar="N",
        help="steps up the divergence" + default("smart_steps"),
    )
    smart.add_argument(
        "--smart-step-size",
        type=RATE,
        metavar="X",
        help="length of a step as a share of the vectors' norm, with --smart-variant projected "
        "(default: the radius); what the gradient is multiplied by, with normalised (default: "
        "0.001)",
    )
    smart.add_argument(
        "--smart-radius",
        type=RATE,
        metavar="SHARE",
        help="size of the noise as a share of the norm of the vectors it is added to, which "
        "carries over from one encoder to another (default: 0.1; of --smart-variant normalised a "
        "norm of 1, whatever the vectors)",
    )
    smart.add_argument(
        "--smart-norm", choices=NORMS, help="of noise and gradient" + default("smart_norm")
    )
    smart.add_argument(
        "--smart-dropout",
        choices=DROPOUTS,
        help="of the noisy pass: the clean one's, or another" + default("smart_dropout"),
    )


def task_weight(text: str) -> tuple[str | None, float]:
    """`1` -> (None, 1.0); `sst=1` -> ("sst", 1.0)."""
    task, sign, weight = text.rpartition("=")
    try:
        value = float(weight)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0) or bool(sign) != bool(task):
        raise argparse.ArgumentTypeError(
            f"expected a weight from 0, or TASK=WEIGHT, found {text!r}"
        )
    return task or None, value


def regularizer_settings(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> dict[str, Any]:
    """The weights by task; flags that would do nothing are refused."""
    settings = {
        f"{name}_weight": weights_by_task(getattr(args, f"{name}_weight"), name, parser, tasks)
        for name in WEIGHTS
    }
    if args.freeze_encoder and any(settings.values()):
        name = next(name for name, weights in settings.items() if weights).replace("_", "-")
        parser.error(f"--{name} and --freeze-encoder: expected one of them")
    needs = [
        (name, "smart_weight")
        for name in ("variant", "place", "steps", "step_size", "radius", "norm", "dropout")
    ]
    for name, owner in [(f"smart_{name}", owner) for name, owner in needs] + [
        ("proximal_momentum", "proximal_weight")
    ]:
        if getattr(args, name) is not None and not settings[owner]:
            shown, wanted = (n.replace("_", "-") for n in (name, owner))
            parser.error(f"--{shown}: expected a --{wanted} above 0, found none")
    if args.precision == "bf16" and (args.smart_radius or 1) < BF16_RADIUS:
        parser.error(
            f"--smart-radius: expected {BF16_RADIUS:.4f} at least with --precision bf16, which "
            f"rounds by more than such noise, found {args.smart_radius}"
        )
    return settings


def weights_by_task(
    given: list[tuple[str | None, float]] | None,
    name: str,
    parser: argparse.ArgumentParser,
    tasks: tuple[str, ...],
) -> dict[str, float]:
    """Weight of each task, those of 0 left out."""
    found: dict[str, float] = {}
    flag = f"--{name.replace('_', '-')}-weight"
    names = [task for task, _ in given or []]
    for task in names:
        if names.count(task) > 1:
            parser.error(f"{flag}: expected one weight for {task or 'all tasks'}, found several")
    for task, weight in sorted(given or [], key=lambda pair: pair[0] is not None):
        if task is not None and task not in tasks:
            parser.error(f"{flag}: expected one of {', '.join(tasks)}, found {task}")
        found |= dict.fromkeys(tasks if task is None else (task,), weight)
    return {task: weight for task, weight in found.items() if weight}
