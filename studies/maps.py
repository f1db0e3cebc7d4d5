"""Where the test examples of a task lie in the embeddings of several encoders: t-SNE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from multitask.checkpoint import published
from reports.drawing import blank_figure, save_figure
from reports.embeddings import project
from tasks.readers import Examples

MOST = 1000  # examples shown


def draw_maps(runs: Mapping[str, Path], test: Examples, file: Path) -> None:
    """A map a run, by title: folders of runs that have their weights."""
    from minbert.bi_encoder import BiEncoder

    shown = test.some(MOST)
    assert shown.targets is not None
    figure = blank_figure(3.4 * len(runs), 3.4)
    axes = np.atleast_1d(figure.subplots(1, len(runs)))
    for axis, (title, run) in zip(axes, runs.items(), strict=True):
        best = published(run / "checkpoint" / "best")
        assert best is not None, "a finished run keeps its weights"
        embeddings = BiEncoder.from_pretrained(best).encode(shown.texts[0])
        points = project(embeddings.astype(np.float64), "tsne")
        for label in np.unique(shown.targets):
            x, y = points[shown.targets == label].T
            axis.scatter(x, y, s=5, alpha=0.7, label=f"{label:g}")
        axis.set(xticks=[], yticks=[], title=title)
    axes[0].legend(title="label", fontsize=7, title_fontsize=7)
    save_figure(figure, file)
