"""What LaCon's runs made of the test examples: maps with label anchors, singular values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from minbert.json_files import read_json
from multitask.assembly import assemble
from multitask.checkpoint import published
from multitask.config import RunConfig
from multitask.errors import RunError
from multitask.evaluation import score_split
from pretrain.probe import Embedding
from reports.drawing import blank_figure, new_figure, save_figure
from reports.embeddings import project
from tasks.lacon import Anchored

MOST = 1000  # examples of a map


class Space(NamedTuple):
    """Examples (N, H) of unit length with their classes (N,), and label embeddings (C, H)."""

    examples: np.ndarray
    classes: np.ndarray
    labels: np.ndarray | None


def space_of(run: Path, matched: bool = True) -> Space:
    """Of a finished run's test examples the embeddings; `matched`: what LaCon matches instead."""
    config = RunConfig.from_json(read_json(run / "config.json", RunError))
    tasks, model, splits = assemble(config)
    best = published(run / "checkpoint" / "best")
    assert best is not None, "a finished run keeps its weights"
    model.load(best)
    ((name, task),) = tasks.items()
    split = splits[name]["test"]
    assert split.examples.targets is not None
    labels = None
    scores: Any = partial(F.normalize, dim=-1)
    if matched and config.objective in ("lacon", "lacon-fusion"):
        head = model.heads[name]
        assert isinstance(head.labels, torch.Tensor)
        labels = F.normalize(head.labels.detach(), dim=-1).cpu().numpy()

        def scores(outputs: Anchored) -> torch.Tensor:
            return F.normalize(outputs.instances, dim=-1)
    else:
        model.heads[name] = Embedding()
    task = replace(task, kind=replace(task.kind, scores=scores))
    examples = score_split(model, task, split, config.precision)
    return Space(examples, split.examples.targets, labels)


def draw_spaces(spaces: Mapping[str, Space], file: Path) -> None:
    """Figure 4: t-SNE of examples and labels together, a map a run."""
    figure = blank_figure(3.4 * len(spaces), 3.4)
    axes = np.atleast_1d(figure.subplots(1, len(spaces)))
    for axis, (title, space) in zip(axes, spaces.items(), strict=True):
        rows = np.sort(np.random.default_rng(0).permutation(len(space.examples))[:MOST])
        anchors = np.zeros((0, space.examples.shape[1])) if space.labels is None else space.labels
        points = project(np.concatenate([space.examples[rows], anchors]).astype(float), "tsne")
        for label in np.unique(space.classes):
            own = np.flatnonzero(space.classes[rows] == label)
            dots = axis.scatter(*points[own].T, s=5, alpha=0.7, label=f"{label:g}")
            if len(anchors):
                place = points[len(rows) + int(label)]
                colour = dots.get_facecolor()
                axis.scatter(*place, s=120, marker="*", color=colour, edgecolor="black", alpha=1)
        axis.set(xticks=[], yticks=[], title=title)
    axes[0].legend(title="label", fontsize=7, title_fontsize=7)
    save_figure(figure, file)


def spectrum(space: Space) -> np.ndarray:
    """Singular values of the examples (N, H), over the largest (appendix A.3)."""
    values = np.linalg.svd(space.examples.astype(np.float64), compute_uv=False)
    return values / values[0]


def effective_rank(values: np.ndarray) -> float:
    """The exponential of their entropy (Roy and Vetterli, 2007)."""
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def draw_spectra(spaces: Mapping[str, Space], file: Path) -> None:
    """Singular values by rank, a line a run."""
    figure, axis = new_figure(4.2, 3.2)
    for title, space in spaces.items():
        values = spectrum(space)
        axis.plot(np.arange(1, len(values) + 1), values, label=title)
    axis.set(xlabel="rank", ylabel="singular value / largest", xscale="log", yscale="log")
    axis.set_ylim(1e-4, 1.5)
    axis.legend(fontsize=7)
    save_figure(figure, file)
