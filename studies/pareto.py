"""A sweep of preferences: one run a ray, the losses they end at, and the front as a figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from minbert.device import choose_device
from minbert.json_files import write_json
from multitask.combiners.pareto_mtl import preference_rays
from multitask.config import RunConfig
from multitask.evaluation import mean_losses
from multitask.run import build_model, complete, load_splits
from reports.front import Front, draw_fronts
from tasks import build_task

SUBSET = 1000  # training examples of each task on which the losses are measured


def sweep(
    config: RunConfig, count: int, folder: Path, overwrite: bool = False, verbose: bool = False
) -> Front:
    """One run for each of at least `count` preferences, under `folder`; finished ones are kept.

    Preferences are relative to the losses before training: with equal ones, all objectives are to
    fall by the same factor. Leaves `front.json` and `front.png`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = losses_before_training(config)
    rays = preference_rays(len(before), count)
    wishes = rays / np.array(list(before.values()))
    wishes /= wishes.sum(1, keepdims=True)
    found = []
    for number, wish in enumerate(wishes, 1):
        print(f"\nray {number} of {len(wishes)}", flush=True)
        one = replace(config, preference=tuple(wish.tolist()), measured_examples=SUBSET)
        ray = folder / f"ray-{number}"
        result = complete(one, ray, resume=True, overwrite=overwrite, verbose=verbose)
        found.append([result["training_losses"][name] for name in before])
    front = Front(
        config.combiner, tuple(before), wishes, np.array(found), np.array(list(before.values()))
    )
    write_json(folder / "front.json", front.to_json())
    draw_fronts([front], folder / "front.png")
    return front


def losses_before_training(config: RunConfig) -> dict[str, float]:
    """Mean losses of the encoder with its fresh heads, by objective."""
    chosen = {name: build_task(name, **config.task_options.get(name, {})) for name in config.tasks}
    model = build_model(config, chosen, choose_device(config.device))
    train = {name: s["train"] for name, s in load_splits(config, chosen, model.bi_encoder).items()}
    return mean_losses(model, chosen, train, config.precision, SUBSET)
