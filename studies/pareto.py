"""Sweep of preferences: one run per ray, the final losses, and a figure of the front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic_files import remove
from common.errors import RunError, SettingsError
from common.folder_content import folder_of_runs
from common.json_files import read_json, write_json
from common.settings import short_repr
from multitask.assembly import assemble
from multitask.combiners.pareto_mtl import preference_rays
from multitask.control import RunControl
from multitask.loop.evaluation import mean_losses
from multitask.precision import of_first_run
from multitask.run import complete
from multitask.settings.config import RunConfig, difference
from multitask.storage.run_folder import LOCK, RunFolder
from multitask.storage.stored_config import without_paths
from reports.front import Front, draw_fronts

LOSSES = "rays.json"  # those before training
FRONT, FIGURE = "front.json", "front.png"
# Settings that a sweep chooses for each run.
SET_HERE = ("preference", "cones", "loss_sizes", "measured_examples")
SUBSET = 1000  # training examples per task for measuring the losses


def sweep(config: RunConfig, count: int, folder: Path, control: RunControl = RunControl()) -> Front:
    """Train one run for each of at least `count` preferences under `folder`; keep finished runs.

    Preferences are relative to the losses before training: equal preferences request that all
    objectives fall by the same factor. Pareto MTL's cones are those of the sweep's own rays. Write
    `front.json` and `front.png`. Raise SettingsError for a configuration with a setting that the
    sweep chooses for each run.
    """
    given = {**config.other_than_defaults(), **config.combiner.other_than_defaults()}
    for key in SET_HERE:
        if key in given:
            line = "expected none, because a sweep sets it"
            raise SettingsError(f"{key}: {line}, found {short_repr(given[key])}")
    control = replace(control, resume=not control.overwrite)
    names = (LOSSES, FRONT, FIGURE) if (folder / LOSSES).exists() else ()
    with folder_of_runs(folder, "a sweep", names, ("ray-",) if names else ()):
        return trained_front(config, count, folder, control)


def trained_front(config: RunConfig, count: int, folder: Path, control: RunControl) -> Front:
    """Train the runs of a sweep in its locked folder; return and write the front."""
    config = of_first_run(folder / "ray-1", config, control.overwrite)
    before = stored_losses(config, count, folder, control.overwrite)
    rays = preference_rays(len(before), count)
    sizes = tuple(before.values())
    if control.overwrite:
        remove_rays_beyond(folder, len(rays))
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
    write_json(folder / FRONT, front.to_json())
    draw_fronts([front], folder / FIGURE)
    return front


def remove_rays_beyond(folder: Path, count: int) -> None:
    """Remove the runs of an earlier sweep with more rays."""
    for ray in folder.glob("ray-*"):
        number = ray.name.removeprefix("ray-")
        run = RunFolder(ray)
        if number.isdecimal() and int(number) > count and run.has_config():
            with run.locked():
                run.remove()
            remove(ray / LOCK)
            if not any(ray.iterdir()):
                ray.rmdir()


def stored_losses(config: RunConfig, count: int, folder: Path, overwrite: bool) -> dict[str, float]:
    """Return the mean losses of the encoder with new heads, stored in `rays.json`.

    A new measurement on another machine would differ in the last digit, and the configurations of
    finished rays would no longer match. With `overwrite` they are measured again. Raise RunError if
    the file is not a sweep's, or of another one.
    """
    file = folder / LOSSES
    kept = check_rays(file, None if overwrite else count) if file.exists() else None
    if kept is None or overwrite:
        tasks, model, splits = assemble(config)
        train = {name: several["train"] for name, several in splits.items()}
        losses = mean_losses(model, tasks, train, SUBSET)
        found = {"rays": count, "losses_before": losses, "config": without_paths(config)}
        write_json(file, found)
        return losses
    if other := difference(without_paths(config), kept["config"], ignored=("linear",)):
        line = f"expected a sweep of this configuration, found another: {other}"
        raise RunError(f"{file}: {line}; choose another --output, or --overwrite")
    return kept["losses_before"]


def check_rays(file: Path, count: int | None) -> Mapping[str, Any]:
    """Return the content of `rays.json`; raise RunError for another file or number of rays.

    None allows every number.
    """
    kept = read_json(file, RunError)
    if not {"rays", "losses_before", "config"} <= kept.keys():
        line = "expected a sweep's rays, losses_before and config"
        raise RunError(f"{file}: {line}, found {sorted(kept)}")
    if count not in (None, kept["rays"]):
        line = f"expected a sweep of {count} rays, found {kept['rays']}"
        raise RunError(f"{file}: {line}; choose another --output, or --overwrite")
    return kept
