"""A sweep of preferences: one run a ray, the losses they end at, and the front as a figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from common.json_files import read_json, write_json
from multitask.assembly import assemble
from multitask.combiners.pareto_mtl import preference_rays
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.errors import RunError
from multitask.evaluation import mean_losses
from multitask.run import complete
from reports.cells import write_cell
from reports.front import Front, draw_fronts

SUBSET = 1000  # training examples of each task on which the losses are measured


def sweep(config: RunConfig, count: int, folder: Path, control: RunControl = RunControl()) -> Front:
    """One run for each of at least `count` preferences, under `folder`; finished ones are kept.

    Preferences are relative to the losses before training: with equal ones, all objectives are to
    fall by the same factor. Pareto MTL's cones are those of the sweep's own rays. Leaves
    `front.json` and `front.png`.
    """
    control = replace(control, resume=True)
    folder.mkdir(parents=True, exist_ok=True)
    before = kept_losses(config, count, folder)
    rays = preference_rays(len(before), count)
    sizes = tuple(before.values())
    found = []
    for number, wish in enumerate(rays, 1):
        print(f"\nray {number} of {len(rays)}", flush=True)
        one = config.changed(
            preference=tuple(wish.tolist()),
            loss_sizes=sizes,
            **({"cones": count} if "cones" in config.combiner.by_key() else {}),
            measured_examples=SUBSET,
        )
        ray = folder / f"ray-{number}"
        result = complete(one, ray, control)
        found.append([result["training_losses"][name] for name in before])
    front = Front(config.combiner.name, tuple(before), rays, np.array(found), np.array(sizes))
    write_cell(folder / "front.json", front.to_json())
    draw_fronts([front], folder / "front.png")
    return front


def kept_losses(config: RunConfig, count: int, folder: Path) -> dict[str, float]:
    """The losses before training, measured once and kept in `rays.json`.

    Measured again on another machine they would differ in the last digit, and no finished ray
    would be the same run.
    """
    file = folder / "rays.json"
    if not file.exists():
        write_json(file, {"rays": count, "losses_before": losses_before_training(config)})
    kept = read_json(file, RunError)
    if not {"rays", "losses_before"} <= kept.keys():
        raise RunError(f"{file}: expected a sweep's rays and losses_before, found {sorted(kept)}")
    if kept["rays"] != count:
        raise RunError(f"{file}: expected a sweep of {count} rays, found {kept['rays']}")
    return kept["losses_before"]


def losses_before_training(config: RunConfig) -> dict[str, float]:
    """Mean losses of the encoder with its fresh heads, by objective."""
    tasks, model, splits = assemble(config)
    train = {name: several["train"] for name, several in splits.items()}
    return mean_losses(model, tasks, train, SUBSET)
