"""One model whose weights are the mean of several runs' (Wortsman et al., 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ensemble.select import halves
from multitask.assembly import Assembly, assemble
from multitask.config import RunConfig
from multitask.errors import RunError
from multitask.evaluation import Metrics, score_split, selection_score
from multitask.run_folder import RunFolder
from multitask.settings_file import settings_of
from tasks.described import meaning

# By runs that go together.
SHARED = ("encoder", "pooling", "tasks", "task_options", "own_tasks", "data")
Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Soup:
    """The averaged model, built, and how it came about.

    `config` is what a run like it would have; `members` are the runs whose weights went in, `half`
    the dev rows of each task on which they were selected, empty where all were taken.
    """

    config: RunConfig
    built: Assembly
    members: tuple[Path, ...]
    half: Mapping[str, np.ndarray]


def mean_weights(several: Sequence[Weights]) -> dict[str, Tensor]:
    """The mean of each tensor over the models, added up in float64."""
    return {
        name: torch.stack([weights[name].double() for weights in several]).mean(0).to(value.dtype)
        for name, value in several[0].items()
    }


def make_soup(runs: Sequence[Path], greedy: bool, seed: int) -> Soup:
    """The mean of all runs' best weights, or of those that a greedy selection keeps.

    Greedy: the runs in the order of their dev scores, each kept if the mean with it scores no worse
    (Wortsman et al., 2022, Recipe 1), on one half of dev. Raises RunError for runs that do not have
    the same encoder, tasks and heads.
    """
    base = soup_config(runs)
    with settings_of(runs[0]):
        built = assemble(base)
    several = [weights_of(run, built) for run in runs]
    chosen, half = list(range(len(runs))), {}
    if greedy:
        ids = {name: np.array(splits["dev"].examples.ids) for name, splits in built.splits.items()}
        half = {name: halves(found, seed)[0] for name, found in ids.items()}
        chosen = greedy_soup(several, built, half)
    built.model.load_state_dict(mean_weights([several[one] for one in chosen]))
    return Soup(base, built, tuple(runs[one] for one in chosen), half)


def soup_config(runs: Sequence[Path]) -> RunConfig:
    """The configuration that the runs share; RunError where they do not go together."""
    configs = [RunFolder(run).task_config() for run in runs]
    for run, config in zip(runs, configs, strict=True):
        for key in SHARED:
            mine, theirs = shared(configs[0], key), shared(config, key)
            if mine != theirs:
                raise RunError(f"{run}: expected {key} {mine} as {runs[0]} has, found {theirs}")
    return replace(configs[0], mode="soup", init=None)


def shared(config: RunConfig, key: str) -> Any:
    """A setting as it is compared: of own tasks what their heads say, wherever their files are."""
    value = getattr(config, key)
    return {n: meaning(own) for n, own in value.items()} if key == "own_tasks" else value


def greedy_soup(
    several: Sequence[Weights], built: Assembly, half: Mapping[str, np.ndarray]
) -> list[int]:
    """Which models go in, the best one first."""

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
    """Metrics of the model as it is on some dev rows of each task."""
    found = {}
    for name, task in built.tasks.items():
        split = built.splits[name]["dev"]
        assert split.examples.targets is not None
        scores = score_split(built.model, task, split)[rows[name]]
        found[name] = task.kind.measure(scores, split.examples.targets[rows[name]])
    return found


def weights_of(run: Path, built: Assembly) -> dict[str, Tensor]:
    """The best weights of a run; RunError if they are not those of this model."""
    folder = RunFolder(run).weights()
    try:
        built.model.load(folder)
    except RuntimeError as error:  # what torch says of other shapes
        raise RunError(f"{run}: expected weights of the same encoder and heads: {error}") from error
    return {name: value.detach().clone() for name, value in built.model.state_dict().items()}
