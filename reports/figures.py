"""Figures of a comparison, drawn from runs on disk, and their conversion to SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from common.atomic_files import atomic_path
from common.errors import UserError
from multitask.run_folder import RunFolder
from multitask.telemetry import read_steps
from reports.store import StoredRun
from reports.systems import ScoredSystem, runs_of, task_of, tasks_of
from tasks import build_task, data_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def blank_figure(width: float, height: float) -> Figure:
    """Return a figure without panels that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one panel."""
    figure = blank_figure(width, height)
    return figure, figure.subplots()


def save_figure(figure: Figure, file: Path) -> None:
    """Write the file atomically: under a temporary name, then renamed."""
    with atomic_path(file) as new:
        figure.savefig(new, dpi=130, format=file.suffix.removeprefix("."))


POINTS = 60  # per curve over steps; each is the mean of nearby steps


def svg(figure: Figure, title: str, number: int = 0) -> str:
    """Convert a figure to an SVG element that scales with the page, with `title` as its label.

    `number` distinguishes figures with the same title, so that element ids are unique.
    """
    from html import escape

    buffer = io.StringIO()
    # Without a date and with fixed element ids, the same figure has the same bytes.
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "comparison", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    prefix = re.sub(r"\W+", "-", f"{title} {number}".lower())
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def learning_curve(systems: Sequence[ScoredSystem], task: str) -> Figure | None:
    from matplotlib.ticker import MaxNLocator

    metric = task_of(task, runs_of(systems)).kind.main_metric
    figure, axis = new_figure(4.2, 3.3)
    for number, one in enumerate(systems):
        for run in one.system.runs:
            history = (run.metrics or {}).get("history", [])
            if task not in run.config["tasks"] or not history:
                continue
            values = [epoch["dev"][task][metric] for epoch in history]
            first = not any(line.get_label() == one.system.name for line in axis.lines)
            axis.plot(
                [epoch["epoch"] for epoch in history],
                values,
                marker="o",
                ms=3,
                color=f"C{number % 10}",
                label=one.system.name if first else None,
            )
    if not axis.lines:
        return None
    axis.set(title=task, xlabel="epoch", ylabel=f"dev {metric}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(fontsize=7)
    return figure


def confusion(one: ScoredSystem, task: str) -> Figure:
    """Draw a confusion matrix, summed over the seeds (BEES, Figure 4)."""
    figure, axis = new_figure(3.7, 3.5)
    counts = np.sum([confusion_counts(one, task, seed) for seed in one.system.seeds(task)], axis=0)
    share = counts / np.maximum(1, counts.sum(1, keepdims=True))
    axis.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if share[row, column] > 0.5 else "black"
        axis.text(column, row, str(count), ha="center", va="center", fontsize=8, color=color)
    axis.set(xlabel="predicted", ylabel="label")
    axis.set_title(one.system.name, fontsize=8)
    return figure


def confusion_counts(one: ScoredSystem, task: str, seed: int) -> np.ndarray:
    """Count examples by label and prediction (C, C)."""
    scores = one.scores[task, seed]
    classes = scores.values.shape[1]
    assert scores.targets is not None
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (scores.targets.astype(int), one.predictions(task, seed).astype(int)), 1)
    return counts


def similarity_distribution(systems: Sequence[ScoredSystem], task: str = "sts") -> Figure | None:
    """Draw histograms of labels and predictions of the first seed (BEES, Figure 5)."""
    having = [one for one in systems if task in one.metrics]
    if not having:
        return None
    figure, axis = new_figure(5.5, 3.2)
    edges = np.linspace(0, 5, 26).tolist()
    for number, one in enumerate(having):
        scores = one.scores[task, one.system.seeds(task)[0]]
        if number == 0 and scores.targets is not None:
            label = f"labels: mean {scores.targets.mean():.2f}"
            axis.hist(scores.targets, edges, color="0.8", label=label)
        values = np.clip(one.predictions(task, one.system.seeds(task)[0]), 0, 5)
        label = f"{one.system.name}: mean {values.mean():.2f}"
        axis.hist(values, edges, histtype="step", color=f"C{number % 10}", label=label)
    axis.set(xlabel="similarity", ylabel="pairs")
    axis.legend(fontsize=7)
    return figure


def telemetry_of(run: StoredRun) -> list[dict[str, Any]]:
    """Return the logged steps of a run, or none if it has no telemetry."""
    file = run.folder / "telemetry.jsonl"
    return list(read_steps(file)) if file.exists() else []


def conflict_map(run: StoredRun) -> Figure | None:
    """Draw the mean cosine of gradients, by pair of objectives and part of the encoder."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in telemetry_of(run):
        for layer, pairs in line.get("layers", {}).items():
            for pair, cosine in pairs.items():
                found.setdefault(layer, {}).setdefault(pair, []).append(cosine)
    if not found:
        return None
    pairs = sorted({pair for several in found.values() for pair in several})
    means = np.array(
        [[np.mean(several.get(pair, [np.nan])) for pair in pairs] for several in found.values()]
    )
    figure, axis = new_figure(1.6 + 1.3 * len(pairs), 0.8 + 0.35 * len(found))
    limit = max(0.05, float(np.nanmax(np.abs(means))))
    image = axis.imshow(means, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    axis.set_xticks(range(len(pairs)), pairs, fontsize=7)
    axis.set_yticks(range(len(found)), list(found), fontsize=7)
    for (row, column), value in np.ndenumerate(means):
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7)
    figure.colorbar(image, ax=axis, label="mean cosine")
    return figure


def weights_over_time(run: StoredRun) -> Figure | None:
    """Draw the combiner's weights over the steps; return None if all weights are 1."""
    points: dict[str, list[tuple[int, float]]] = {}
    for line in telemetry_of(run):
        if len(line["weights"]) > 1:
            for name, weight in line["weights"].items():
                points.setdefault(name, []).append((line["step"], weight))
    if not any(weight != 1 for several in points.values() for _, weight in several):
        return None
    figure, axis = new_figure(5.5, 3)
    for name, several in points.items():
        chunks = np.array_split(np.array(several), min(POINTS, len(several)))
        axis.plot([c[:, 0].mean() for c in chunks], [c[:, 1].mean() for c in chunks], label=name)
    axis.set(xlabel="step", ylabel="weight (mean of nearby steps)")
    axis.legend(fontsize=7)
    return figure


def all_figures(systems: Sequence[ScoredSystem]) -> Mapping[str, list[Figure]]:
    """Return figures by title; titles without figures are left out."""
    found: dict[str, list[Figure | None]] = {
        "Learning curves": [learning_curve(systems, task) for task in tasks_of(systems)],
        "Sentiment: labels and predictions": [
            confusion(one, "sst") for one in systems if "sst" in one.metrics
        ],
        "Similarity: labels and predictions": [similarity_distribution(systems)],
    }
    for one in systems:
        several = next((r for r in one.system.runs if len(r.config["tasks"]) > 1), None)
        if several is not None:
            found[f"Gradients of {one.system.name}: cosines"] = [conflict_map(several)]
            found[f"Weights of {one.system.name}"] = [weights_over_time(several)]
    drawn = {title: [f for f in figures if f is not None] for title, figures in found.items()}
    return {title: figures for title, figures in drawn.items() if figures}


METHODS = ("pca", "tsne")
TASK = "sst"  # one sentence with a class per example
COUNT = 1000  # maximum number of examples: t-SNE of more takes minutes


def embedding_maps(systems: Sequence[ScoredSystem], method: str) -> list[Figure]:
    """Draw one figure per system, from its first run with sentiment, weights and data."""
    found = []
    for one in systems:
        maps = (embedding_map(one.system.name, run, method) for run in one.system.runs)
        if (figure := next((figure for figure in maps if figure is not None), None)) is not None:
            found.append(figure)
    return found


def embedding_map(name: str, run: StoredRun, method: str) -> Figure | None:
    """Draw the dev sentences coloured by label; return None without weights or data."""
    data = run.config.get("data")
    if data is None or TASK not in run.config["tasks"]:
        return None
    try:
        best = RunFolder(run.folder).weights()
        examples = build_task(TASK).read(data_folder(str(data)), "dev").sample(COUNT)
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
    """Project embeddings (N, H) to (N, 2)."""
    if method == "tsne":
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(embeddings) - 1) / 3)
        return TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(embeddings)
    from sklearn.decomposition import PCA

    return PCA(2, svd_solver="full").fit_transform(embeddings)
