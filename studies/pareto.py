"""A sweep of preferences: one run a ray, the losses they end at, and the front as a figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from minbert.device import choose_device
from minbert.json_files import read_json, write_json
from multitask.combiners.pareto_mtl import preference_rays
from multitask.config import RunConfig
from multitask.evaluation import mean_losses
from multitask.run import build_model, build_tasks, complete, load_splits
from multitask.run_folder import RunError
from reports.front import Front, draw_fronts

SUBSET = 1000  # training examples of each task on which the losses are measured


def sweep(
    config: RunConfig, count: int, folder: Path, overwrite: bool = False, verbose: bool = False
) -> Front:
    """One run for each of at least `count` preferences, under `folder`; finished ones are kept.

    Preferences are relative to the losses before training: with equal ones, all objectives are to
    fall by the same factor. Leaves `front.json` and `front.png`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before, wishes = chosen_rays(config, count, folder)
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


def chosen_rays(config: RunConfig, count: int, folder: Path) -> tuple[dict[str, float], np.ndarray]:
    """Losses before training and preferences (rays, m), measured once and kept in `rays.json`.

    Measured again on another machine they would differ in the last digit, and no finished ray
    would be the same run.
    """
    file = folder / "rays.json"
    if not file.exists():
        before = losses_before_training(config)
        wishes = preference_rays(len(before), count) / np.array(list(before.values()))
        wishes /= wishes.sum(1, keepdims=True)
        content = {"count": count, "losses_before": before, "preferences": wishes.tolist()}
        write_json(file, content)
    kept = read_json(file, RunError)
    if kept["count"] != count:
        raise RunError(f"{file}: expected a sweep of {count} rays, found {kept['count']}")
    return kept["losses_before"], np.array(kept["preferences"])


def losses_before_training(config: RunConfig) -> dict[str, float]:
    """Mean losses of the encoder with its fresh heads, by objective."""
    chosen = build_tasks(config)
    model = build_model(config, chosen, choose_device(config.device))
    train = {name: s["train"] for name, s in load_splits(config, chosen, model.bi_encoder).items()}
    return mean_losses(model, chosen, train, config.precision, SUBSET)
