"""Divergence under SMART's noise and under random noise: python -m studies.noise

Encode STS pairs without further training and without dropout. The random noise has the values of
the adversarial noise, shuffled within each text and with random signs, so each text's norm is the
same. `first` and `second` are noise on one tower only. `share` is the norm of the noise divided by
that of the vectors to which it is added. `likeness` is the cosine between the first layer's inputs
with and without noise. Both are means over tokens. The result is noise.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.argument_types import typed
from common.entry_point import start
from common.environment import environment
from common.json_files import write_json
from common.settings import Count, Positive
from minbert.batching import NOISE_PLACES, sorted_batches
from multitask.assembly import assemble
from multitask.passes import EncoderPass, Part
from multitask.regularizers import Smart
from multitask.regularizers.base import CleanPass
from multitask.regularizers.smart import RADIUS, SmartTerm
from multitask.settings.config import RunConfig
from reports.tables import text_table
from tasks import SAMPLE

TASK, BATCH_TOKENS = "sts", 1024
TOWERS = ("both", "first", "second")
SIZES = ("share", "likeness")


def settings(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the variants to compare."""
    balls = {
        "projected, inf": {"smart_radius": args.radius},
        "projected, l2": {"smart_radius": args.radius, "smart_norm": "l2"},
        "normalised": {},
    }
    return {
        f"{name}, {steps} steps, {place}": ball
        | {"smart_variant": name.split(",")[0], "smart_steps": steps, "smart_place": place}
        for place in NOISE_PLACES
        for name, ball in balls.items()
        for steps in (1, 3)
    }


def smart_term(config: RunConfig) -> SmartTerm:
    """Return the SMART term of a configuration."""
    (settings,) = config.regularizers
    assert isinstance(settings, Smart)
    return SmartTerm(settings, config.seed)


@torch.no_grad()
def shuffled(noise: Tensor, lengths: Tensor, draw: torch.Generator) -> Tensor:
    """Return each text's noise values in random order and with random signs."""
    found = []
    for part in noise.cpu().split(lengths.tolist()):
        values = part.flatten()[torch.randperm(part.numel(), generator=draw)]
        signs = torch.randint(0, 2, values.shape, generator=draw) * 2 - 1
        found.append((values * signs).view_as(part))
    return torch.cat(found).to(noise)


def on_tower(noise: Tensor, clean: CleanPass, tower: str) -> Tensor:
    """Return the noise, set to zero on the other tower."""
    if tower == "both":
        return noise
    first = clean.batch.sequence < clean.batch.examples
    return noise * (first if tower == "first" else ~first)[:, None]


@torch.no_grad()
def divergence(smart: SmartTerm, clean: CleanPass, noise: Tensor) -> float:
    """Return the divergence summed over the examples."""
    batch = smart.noisy(clean, noise)
    return float(clean.divergence(clean.head(clean.embed(batch)), clean.outputs)) * batch.examples


def compare(smart: SmartTerm, every: list[CleanPass], draw: torch.Generator) -> dict[str, Any]:
    """Return mean divergences under adversarial and random noise by tower, and the noise's size."""
    total = sum(clean.batch.examples for clean in every)
    found: dict[str, dict[str, float]] = {t: {"adversarial": 0.0, "random": 0.0} for t in TOWERS}
    cosines, shares, likeness = [], [], []
    for clean in every:
        noise = smart.noise(clean)
        random = shuffled(noise, clean.batch.lengths, draw)
        for tower, sums in found.items():
            for name, one in (("adversarial", noise), ("random", random)):
                sums[name] += divergence(smart, clean, on_tower(one, clean, tower)) / total
        cosines.append(F.cosine_similarity(noise, smart.start(clean)))
        embeddings = clean.model.bi_encoder.encoder.embeddings
        with torch.no_grad():
            vectors = embeddings.vectors(clean.batch, smart.settings.place)
            plain, noisy = (embeddings(b) for b in (clean.batch, smart.noisy(clean, noise)))
        shares.append(noise.norm(dim=1) / vectors.norm(dim=1))
        likeness.append(F.cosine_similarity(plain, noisy))
    sizes = {"cosine_to_start": cosines, "share": shares, "likeness": likeness}
    return found | {name: float(torch.cat(every).mean()) for name, every in sizes.items()}


def clean_batches(config: RunConfig, count: int) -> list[CleanPass]:
    """Return batches of training pairs with their outputs without noise."""
    tasks, model, splits = assemble(config)
    model.eval()
    split = splits[TASK]["train"]
    rows = np.random.default_rng(0).permutation(len(split.examples))[:count]
    found = []
    for part in sorted_batches(split.lengths[rows], BATCH_TOKENS):
        indices = rows[part]
        targets = split.targets(indices, model.bi_encoder.device)
        with torch.no_grad():
            one = EncoderPass(model, [split.batch(indices)], len(split.tokens), TASK)
            outputs = model.heads[TASK](*one.texts)
            loss = tasks[TASK].compute_losses(outputs, one.texts, targets)[TASK]
        whole = Part((indices,), indices, share=1.0)
        found.append(CleanPass(one, tasks[TASK], whole, 0, targets, outputs, loss))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.noise", description=__doc__)
    parser.add_argument("--data", default=SAMPLE, help="folder with the CS224N files")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--examples", type=typed(Count), default=256, help="pairs (default: 256)")
    parser.add_argument(
        "--radius",
        type=typed(Positive),
        default=RADIUS,
        help=f"radius of projected noise, relative to the vectors' norm (default: {RADIUS})",
    )
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--output", type=Path, default=Path("results/smart-noise"))
    args = parser.parse_args()
    config = RunConfig(
        mode="single",
        tasks=(TASK,),
        data=args.data,
        encoder=args.encoder,
        precision=args.precision,
        smart_weight={TASK: 1.0},
    )
    every, draw = clean_batches(config, args.examples), torch.Generator().manual_seed(0)
    found = {
        name: compare(smart_term(config.changed(**changes)), every, draw)
        for name, changes in settings(args).items()
    }
    args.output.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in vars(args).items() if key not in ("output", "data")}
    content = {"settings": kept, "environment": environment(), "variants": found}
    write_json(args.output / "noise.json", content)
    header = ["noise", "tower", "adversarial", "random", "ratio", "cosine", *SIZES]
    print(text_table(header, rows(found)))


def rows(found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """Return one row per variant and tower."""
    shown: Callable[[float], str] = "{:.3g}".format
    return [
        [
            name,
            tower,
            shown(kept[tower]["adversarial"]),
            shown(kept[tower]["random"]),
            shown(kept[tower]["adversarial"] / kept[tower]["random"]),
            f"{kept['cosine_to_start']:.3f}",
            *(f"{kept[size]:.3f}" for size in SIZES),
        ]
        for name, kept in found.items()
        for tower in TOWERS
    ]


if __name__ == "__main__":
    start("python -m studies.noise", main)
