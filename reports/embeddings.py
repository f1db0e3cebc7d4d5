"""Where a run's encoder puts the sentences of dev, in two dimensions, by label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from common.errors import UserError
from multitask.stored import best_weights
from reports.drawing import new_figure
from reports.store import StoredRun
from reports.system_scores import Scored
from tasks import build_task, data_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("pca", "tsne")
TASK = "sst"  # whose examples are one sentence with a class
COUNT = 1000  # examples at most: t-SNE of more takes minutes


def embedding_maps(systems: Sequence[Scored], method: str) -> list[Figure]:
    """A figure a system: its first run that has sentiment, weights, and its data still there."""
    found = []
    for one in systems:
        maps = (embedding_map(one.system.name, run, method) for run in one.system.runs)
        if (figure := next((figure for figure in maps if figure is not None), None)) is not None:
            found.append(figure)
    return found


def embedding_map(name: str, run: StoredRun, method: str) -> Figure | None:
    """Dev sentences, a dot each, coloured by label; None where the run cannot give them."""
    data = run.config.get("data")
    if data is None or TASK not in run.config["tasks"]:
        return None
    try:
        best = best_weights(run.folder)
        examples = build_task(TASK).read(data_folder(str(data)), "dev").some(COUNT)
    except (UserError, OSError):
        return None
    assert examples.targets is not None
    from minbert.bi_encoder import BiEncoder

    embeddings = BiEncoder.from_pretrained(best).encode(list(examples.texts[0]))
    points = project(embeddings.astype(np.float64), method)
    figure, axis = new_figure(4.4, 3.9)
    for label in np.unique(examples.targets):
        x, y = points[examples.targets == label].T
        axis.scatter(x, y, s=6, alpha=0.7, label=f"{label:g}")
    axis.set(xticks=[], yticks=[])
    axis.set_title(f"{name}: {'t-SNE' if method == 'tsne' else 'PCA'}", fontsize=8)
    axis.legend(title="label", fontsize=7, title_fontsize=7)
    return figure


def project(embeddings: np.ndarray, method: str) -> np.ndarray:
    """(N, H) -> (N, 2)."""
    if method == "tsne":
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(embeddings) - 1) / 3)
        return TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(embeddings)
    from sklearn.decomposition import PCA

    return PCA(2, svd_solver="full").fit_transform(embeddings)
