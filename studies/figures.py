"""Figures of studies: lines of means over seeds, and maps of examples by t-SNE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.files import file_lock
from multitask.control import RunControl
from multitask.run import complete
from multitask.runs import Run
from multitask.settings.config import RunConfig
from reports.embedding_maps import project
from reports.figures import (
    MARKERS,
    blank_figure,
    heading,
    mean_line,
    new_figure,
    save_figure,
    seeds_text,
    styled,
)
from tasks.readers import Examples

Line = Mapping[float, Mapping[int, float]]  # x value -> seed -> figure, as a fraction of one


@styled
def draw_lines(
    lines: Mapping[str, Line],
    file: Path,
    xlabel: str,
    ylabel: str,
    xticks: Sequence[float] | None = None,
) -> None:
    """Plot one line per title, in per cent, with error bars.

    If no line has two points, the file is deleted.
    """
    seeds = {seed for line in lines.values() for found in line.values() for seed in found}
    if max((sum(map(bool, line.values())) for line in lines.values()), default=0) < 2:
        file.unlink(missing_ok=True)
        return
    figure, axis = new_figure(4.4, 3.6)
    for title, line in lines.items():
        if points := {x: [100 * f for f in found.values()] for x, found in line.items() if found}:
            mean_line(axis, points, title)
    axis.set(xlabel=xlabel, ylabel=f"{ylabel} (%)")
    if xticks is not None:
        axis.set_xticks(list(xticks))
    bars = "mean ± standard deviation of " if len(seeds) > 1 else ""
    heading(axis, ylabel, f"{bars}{seeds_text(seeds)}")
    axis.legend()
    save_figure(figure, file)


@styled
def draw_curve(
    points: Mapping[float, float], ylabel: str, file: Path, seeds: Iterable[int] = ()
) -> None:
    """Plot dev scores over the weight of SMART, evenly spaced as in BEES' figures.

    With fewer than two points, the file is deleted.
    """
    if len(points) < 2:
        file.unlink(missing_ok=True)
        return
    figure, axis = new_figure(4.4, 3.4)
    axis.plot([f"{weight:g}" for weight in points], list(points.values()), marker="o")
    axis.set(xlabel="weight of SMART", ylabel=ylabel)
    heading(axis, f"{ylabel} by weight of SMART", seeds_text(seeds))
    save_figure(figure, file)


MOST = 1000  # examples per map


class EmbeddingSpace(NamedTuple):
    """Examples (N, H) with their classes (N,), and label embeddings (C, H)."""

    examples: np.ndarray
    classes: np.ndarray
    labels: np.ndarray | None


def map_folder(runs: Path, name: str, config: RunConfig) -> Path:
    """Return the folder of a map's run, which depends on its configuration."""
    return runs / f"map-{name}-{config.digest()}"


def complete_map_run(config: RunConfig, runs: Path, name: str) -> Path:
    """Complete the run of a map and return its folder."""
    folder = map_folder(runs, name, config)
    with file_lock(folder):
        complete(config, folder, RunControl(resume=True))
    return folder


def draw_maps(runs: Mapping[str, Path], test: Examples, file: Path) -> None:
    """Draw one map per run; `runs` maps titles to folders of runs with weights."""
    from minbert.bi_encoder import BiEncoder

    shown = test.sample(MOST)  # before encoding
    assert shown.targets is not None
    spaces = {}
    for title, run in runs.items():
        embeddings = BiEncoder.from_pretrained(Run(run).weights()).encode(shown.texts[0])
        spaces[title] = EmbeddingSpace(embeddings, shown.targets, None)
    draw_spaces(spaces, file)


@styled
def draw_spaces(spaces: Mapping[str, EmbeddingSpace], file: Path) -> None:
    """Draw one joint t-SNE map of examples and labels per space; labels are stars."""
    figure = blank_figure(3.4 * len(spaces), 3.4)
    axes = np.atleast_1d(figure.subplots(1, len(spaces)))
    for axis, (title, space) in zip(axes, spaces.items(), strict=True):
        rows = np.sort(np.random.default_rng(0).permutation(len(space.examples))[:MOST])
        anchors = np.zeros((0, space.examples.shape[1])) if space.labels is None else space.labels
        points = project(np.concatenate([space.examples[rows], anchors]).astype(float), "tsne")
        for number, label in enumerate(np.unique(space.classes)):
            own = np.flatnonzero(space.classes[rows] == label)
            marker = MARKERS[number // 7 % len(MARKERS)]  # seven colours
            dots = axis.scatter(*points[own].T, s=6, alpha=0.7, marker=marker, label=f"{label:g}")
            if len(anchors):
                place = points[len(rows) + int(label)]
                colour = dots.get_facecolor()
                axis.scatter(*place, s=120, marker="*", color=colour, edgecolor="black", alpha=1)
        axis.set(xticks=[], yticks=[])
        heading(axis, title, f"joint t-SNE, n = {len(rows):,}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, title="label", loc="outside lower center", ncols=8)
    save_figure(figure, file)
