"""Test embeddings of LaCon's runs, their singular values, and F1 by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from multitask.assembly import assemble, plain_tasks
from multitask.config import RunConfig
from multitask.evaluation import score_split
from multitask.run_folder import RunFolder
from pretrain.probe import Embedding
from reports.figures import new_figure, save_figure
from studies.figures import Space
from studies.runner import training
from tasks import data_folder
from tasks.lacon import Anchored
from tasks.objectives import LaCon
from tasks.predictions import read_scores, scores_name
from tasks.readers import limit_of


def space_of(run: Path, matched: bool = True) -> Space:
    """Return a run's test embeddings or, if `matched`, the vectors LaCon matches with labels."""
    config = RunFolder(run).config()
    tasks, model, splits = assemble(config)
    model.load(RunFolder(run).weights())
    ((name, task),) = tasks.items()
    split = splits[name]["test"]
    assert split.examples.targets is not None
    labels = None
    scores: Any = partial(F.normalize, dim=-1)
    if matched and isinstance(config.objective, LaCon):
        head = model.heads[name]
        assert isinstance(head.labels, torch.Tensor)
        labels = F.normalize(head.labels.detach(), dim=-1).cpu().numpy()

        def scores(outputs: Anchored) -> torch.Tensor:
            return F.normalize(outputs.instances, dim=-1)
    else:
        model.heads[name] = Embedding()
    task = replace(task, kind=replace(task.kind, scores=scores))
    examples = score_split(model, task, split)
    return Space(examples, split.examples.targets, labels)


def spectrum(space: Space) -> np.ndarray:
    """Return the singular values of the examples (N, H), divided by the largest (appendix A.3)."""
    values = np.linalg.svd(space.examples.astype(np.float64), compute_uv=False)
    return values / values[0]


def effective_rank(values: np.ndarray) -> float:
    """Return the exponential of the values' entropy (Roy and Vetterli, 2007)."""
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def draw_spectra(spaces: Mapping[str, Space], file: Path) -> None:
    """Plot singular values by rank, one line per run."""
    figure, axis = new_figure(4.2, 3.2)
    for title, space in spaces.items():
        values = spectrum(space)
        axis.plot(np.arange(1, len(values) + 1), values, label=title)
    axis.set(xlabel="rank", ylabel="singular value / largest", xscale="log", yscale="log")
    axis.set_ylim(1e-4, 1.5)
    axis.legend(fontsize=7)
    save_figure(figure, file)


def training_with_f1(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run; add `f1_by_class`, `training_counts` and `test_counts`, a value per class."""
    from sklearn.metrics import f1_score

    found = training(config, folder)
    (task,) = config.tasks
    limit = limit_of(config.limit, task)
    train = plain_tasks(config)[task].read(data_folder(config.data), "train", limit)
    assert train.targets is not None
    scores = read_scores(folder / "predictions" / scores_name(task, "test"))
    classes = scores.values.shape[1]
    found["training_counts"] = np.bincount(train.targets, minlength=classes).tolist()
    if scores.targets is not None:
        found["test_counts"] = np.bincount(scores.targets, minlength=classes).tolist()
        predicted, every = scores.values.argmax(1), range(classes)
        figures = f1_score(scores.targets, predicted, labels=every, average=None, zero_division=0)
        found["f1_by_class"] = [round(float(figure), 6) for figure in figures]
    return found
