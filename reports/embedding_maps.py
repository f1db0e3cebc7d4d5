"""Maps of dev sentences: embeddings projected to two dimensions, coloured by label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from common.errors import UserError
from common.progress import with_bar
from multitask.runs import Run
from reports.figures import MARKERS, Drawing, file_name, heading, new_figure, styled, wrapped
from reports.scored_systems import ScoredSystem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASK = "sst"  # one sentence with a class per example
COUNT = 1000  # maximum number of examples: t-SNE of more takes minutes
TITLES = {"pca": "PCA", "tsne": "t-SNE"}


def embedding_maps(systems: Sequence[ScoredSystem], method: str) -> list[Drawing]:
    """Draw one map per system, from its first run with sentiment, weights and data."""
    found = []
    for number, one in with_bar("draw maps", "system", list(enumerate(systems, 1))):
        maps = (embedding_map(one.system.name, run, method) for run in one.system.runs)
        if (figure := next((figure for figure in maps if figure is not None), None)) is not None:
            what = f"{TITLES[method]} of {TASK} sentences, {one.system.name}"
            found.append(Drawing(file_name("map", TASK, str(number)), what, figure))
    return found


@styled
def embedding_map(name: str, run: Run, method: str) -> Figure | None:
    """Draw the dev sentences coloured by label; return None without weights or data."""
    from minbert.bi_encoder import BiEncoder
    from tasks.data import dev_if_here

    if TASK not in run.tasks:
        return None
    task = run.task(TASK)
    try:
        best = run.weights()
    except (UserError, OSError):
        return None
    if (found := dev_if_here(task, run.settings.get("data"))) is None:
        return None
    examples = found.sample(COUNT)
    assert examples.targets is not None
    model = BiEncoder.from_pretrained(best, max_tokens=run.settings.get("max_tokens"))
    embeddings = model.encode(list(examples.texts[0]))
    points = project(embeddings.astype(np.float64), method)
    figure, axis = new_figure(4.1, 4.1)
    names = task.kind.class_names
    for number, label in enumerate(np.unique(examples.targets)):
        x, y = points[examples.targets == label].T
        title = names[int(label)] if names else f"{label:g}"
        axis.scatter(x, y, s=12, alpha=0.8, marker=MARKERS[number % len(MARKERS)], label=title)
    axis.set(xticks=[], yticks=[])
    heading(
        axis,
        wrapped(name),
        f"{TITLES[method]}; n = {len(examples):,}; seed {run.settings.get('seed')}",
    )
    figure.legend(loc="outside lower center", ncols=2, markerscale=1.5)
    return figure


def project(embeddings: np.ndarray, method: str) -> np.ndarray:
    """Project embeddings (N, H) to (N, 2)."""
    if method == "tsne":
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(embeddings) - 1) / 3)
        return TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(embeddings)
    from sklearn.decomposition import PCA

    return PCA(2, svd_solver="full").fit_transform(embeddings)
