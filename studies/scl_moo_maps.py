"""Figure 4 of SCL-MOO: where SST-2's test sentences lie after training on 20 of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from minbert.files import alone
from multitask.assembly import build_tasks
from multitask.checkpoint import published
from multitask.config import RunConfig, difference
from multitask.run import complete
from multitask.run_folder import stored_config
from reports.drawing import blank_figure, save_figure
from reports.embeddings import project
from studies.scl_moo import METHODS, SEEDS, Experiments
from tasks import data_folder

SHOWN = ("ls", "epo", "scl")  # the paper's three, from left to right
TASK, SHOTS = "sst2", 20


def draw_maps(cells: Experiments, results: Path, runs: Path) -> None:
    """Train a run a method, which stays, and draw its [CLS] embeddings by t-SNE."""
    from minbert.bi_encoder import BiEncoder

    figure = blank_figure(3.4 * len(SHOWN), 3.4)
    axes = figure.subplots(1, len(SHOWN))
    for axis, method in zip(axes, SHOWN, strict=True):
        config = replace(cells.few_shot(TASK, SHOTS, method).config, seed=SEEDS[0])
        folder = runs / f"map-{method}"
        with alone(folder):
            complete(config, folder, resume=True, overwrite=not same_run(folder, config))
        test = build_tasks(config)[TASK].read(data_folder(config.data), "test")
        best = published(folder / "checkpoint" / "best")
        assert best is not None, "a finished run keeps its weights"
        assert test.targets is not None
        embeddings = BiEncoder.from_pretrained(best).encode(test.texts[0])
        points = project(embeddings.astype(np.float64), "tsne")
        for label in np.unique(test.targets):
            x, y = points[test.targets == label].T
            axis.scatter(x, y, s=5, alpha=0.7, label=f"{label:g}")
        axis.set(xticks=[], yticks=[], title=METHODS[method])
    axes[0].legend(title="label", fontsize=7, title_fontsize=7)
    save_figure(figure, results / "maps.png")


def same_run(folder: Path, config: RunConfig) -> bool:
    """Whether the folder is empty or holds this run, of which nothing is to be lost."""
    stored = stored_config(folder)
    return stored is None or difference(config.to_json(), stored, ignored=("linear",)) is None
