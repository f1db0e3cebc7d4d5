"""A model with the mean of several runs' weights (Wortsman et al., 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from ensemble.merge import halves
from minbert.folder import read_sentence_settings
from multitask.assembly import Assembly, assemble
from multitask.loop.evaluation import Metrics, score_split, selection_score
from multitask.settings.config import RunConfig
from multitask.storage.data_files import files, has_changed
from multitask.storage.run_folder import RunFolder
from multitask.storage.stored_config import stored_run_errors
from tasks.task_description import output_signature

# Settings that must be equal in all runs.
SHARED = (
    "encoder",
    "pooling",
    "max_tokens",
    "tasks",
    "task_options",
    "own_tasks",
    "data",
    "auxiliary",
)
Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Soup:
    """The averaged model and its origin.

    `members` are the runs whose weights were averaged. `half` has each task's dev rows used for
    selection; it is empty without selection.
    """

    built: Assembly
    members: tuple[Path, ...]
    half: Mapping[str, np.ndarray]


def mean_weights(several: Sequence[Weights]) -> dict[str, Tensor]:
    """Average each tensor over the models; the sum is computed in float64."""
    return {
        name: torch.stack([weights[name].double() for weights in several]).mean(0).to(value.dtype)
        for name, value in several[0].items()
    }


def make_soup(runs: Sequence[Path], greedy: bool, seed: int) -> Soup:
    """Average the best weights of all runs, or of the runs that a greedy selection keeps.

    Greedy selection visits the runs in the order of their dev scores. It keeps a run if the mean
    with it does not score lower on one half of dev (Wortsman et al., 2022, Recipe 1). Raises
    RunError for runs with different encoders, tasks or heads.
    """
    config = soup_config(runs)
    with stored_run_errors(runs[0]):
        check_scored_files(runs, config)
        built = assemble(config)
    several = [weights_of(run, built) for run in runs]
    chosen, half = list(range(len(runs))), {}
    if greedy:
        ids = {name: np.array(splits["dev"].examples.ids) for name, splits in built.splits.items()}
        half = {name: halves(found, seed)[0] for name, found in ids.items()}
        chosen = greedy_soup(several, built, half)
    built.model.load_state_dict(mean_weights([several[one] for one in chosen]))
    return Soup(built, tuple(runs[one] for one in chosen), half)


def check_scored_files(runs: Sequence[Path], config: RunConfig) -> None:
    """Raise RunError if a file of dev or test is not the one that a run read."""
    for key, file in files(config).items():
        task, _, split = key.rpartition(" ")
        if split not in ("dev", "test") or not has_changed(map(RunFolder, runs), task, split, file):
            continue
        run = next(one for one in runs if has_changed([RunFolder(one)], task, split, file))
        line = f"expected the file of {key} that this run read, found another one"
        raise RunError(f"{run}: {line}; restore it, or train again")


def soup_config(runs: Sequence[Path]) -> RunConfig:
    """Return the runs' common configuration; raise RunError if a shared setting differs.

    Runs are compared by the pooling and the limit of tokens of their weights. The configuration has
    these if the run took them from the one that it starts from, because the soup starts from none.
    """
    configs = [RunFolder(run).model_config() for run in runs]
    read = [as_read(run, config) for run, config in zip(runs, configs, strict=True)]
    for run, config in zip(runs, read, strict=True):
        if config.adapter is not None:
            expected = "a run without adapters, whose factors have no useful mean"
            raise RunError(f"{run}: expected {expected}, found adapter {config.adapter.name}")
        for key in SHARED:
            mine, theirs = shared(read[0], key), shared(config, key)
            if mine != theirs:
                raise RunError(f"{run}: expected {key} {mine} as {runs[0]} has, found {theirs}")
    # It trains on nothing, and is not calibrated.
    base = configs[0] if configs[0].init is None else read[0]
    return base.changed(mode="soup", init=None, calibrate=False)


def as_read(run: Path, config: RunConfig) -> RunConfig:
    """Return a run's configuration with the pooling and the limit of tokens of its weights.

    An objective with its own pooling allows no other one.
    """
    kept = read_sentence_settings(RunFolder(run).published_weights())
    own = config.task_objective is not None and config.task_objective.own_pooling
    return config.changed(
        pooling=config.pooling if own else config.pooling or kept.pooling,
        max_tokens=config.max_tokens or kept.max_tokens,
    )


def shared(config: RunConfig, key: str) -> Any:
    """Return a setting for comparison; own tasks are compared without the paths of their data.

    They are split in one way: a member has not learnt from dev or test rows of another.
    """
    value = getattr(config, key)
    if key != "own_tasks":
        return value
    split = ("table", "group", "fold", "folds")
    return {
        name: output_signature(own) | {part: own.get(part) for part in split}
        for name, own in value.items()
    }


def greedy_soup(
    several: Sequence[Weights], built: Assembly, half: Mapping[str, np.ndarray]
) -> list[int]:
    """Return the indices of the selected models, the best one first."""

    def score(members: Sequence[int]) -> float:
        built.model.load_state_dict(mean_weights([several[one] for one in members]))
        return selection_score(dev_metrics(built, half), built.tasks)

    alone = [score([one]) for one in range(len(several))]
    first, *others = sorted(range(len(several)), key=lambda one: -alone[one])
    chosen, best = [first], alone[first]
    for one in others:
        if (found := score([*chosen, one])) >= best:
            chosen, best = [*chosen, one], found
    return chosen


def dev_metrics(built: Assembly, rows: Mapping[str, np.ndarray]) -> Metrics:
    """Compute the metrics of the model's current weights on the given dev rows of each task."""
    found = {}
    for name, task in built.tasks.items():
        split = built.splits[name]["dev"]
        assert split.examples.targets is not None
        scores = score_split(built.model, task, split)[rows[name]]
        found[name] = task.kind.measure(scores, split.examples.targets[rows[name]])
    return found


def weights_of(run: Path, built: Assembly) -> dict[str, Tensor]:
    """Return the best weights of a run; raise RunError if they do not fit this model."""
    folder = RunFolder(run).weights()
    try:
        built.model.load(folder)
    except RuntimeError as error:  # raised by torch for other shapes
        raise RunError(f"{run}: expected weights of the same encoder and heads: {error}") from error
    return {name: value.detach().clone() for name, value in built.model.state_dict().items()}
