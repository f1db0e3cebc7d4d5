"""The table of the runs in a folder, the summary of a run at its end, and that of an ensemble."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import counted
from multitask.runs import Run, other_than_defaults
from reports.examples import first_examples
from reports.scores import read_task
from reports.systems import group_runs
from reports.tables import shown, text_table
from tasks.metrics import LEADERBOARD, OVERALL_KEYS

SCORE = "score: mean of the main dev metrics, correlations scaled to 0..1"
EXAMPLES = 3  # dev examples at the end of a run
ORTHOGONAL, FEW = 0.05, 10  # cosines nearer to 0 are called so; steps that say too little


def runs_table(runs: Sequence[Run], root: Path) -> str:
    """Return a table with one line per run and the main dev metric of each task.

    Runs with the same metrics of the same tasks are together, the best of them first. Unfinished
    runs follow.
    """
    found = (column for run in runs for column in run.main_scores)
    columns = list(dict.fromkeys([*LEADERBOARD.items(), *found]))
    rows, runs = [], sorted(runs, key=lambda run: -(run.score or 0))
    for run in sorted(
        runs, key=lambda run: [*map(columns.index, run.main_scores)] or [len(columns)]
    ):
        unusual = other_than_defaults(run.settings).items()
        rows.append(
            [
                score_text(run.score),
                str(run.folder.relative_to(root)),
                run.settings["mode"],
                " ".join(run.tasks),
                str(run.settings.get("seed", "")),
                ", ".join(f"{key} {shown(value)}" for key, value in unusual),
                "finished" if run.metrics else "unfinished",
                *(score_text(run.main_scores.get(column)) for column in columns),
            ]
        )
    figures = [f"{task} {metric}" for task, metric in columns]
    header = ["score", "run", "mode", "tasks", "seed", "settings", "state", *figures]
    return f"{text_table(header, rows)}\n{SCORE}"


def score_text(value: float | None) -> str:
    """Format a score; None, as for a test set without labels, becomes an empty string."""
    return "" if value is None else f"{value:.4f}"


def metric_rows(dev: Mapping[str, Any], *others: Mapping[str, Any]) -> list[list[str]]:
    """Return a row per task and metric of dev, with those of `others`, then the overall scores."""
    rows = [
        [task, name, *(score_text(one.get(task, {}).get(name)) for one in (dev, *others))]
        for task, found in dev.items()
        if isinstance(found, Mapping)
        for name in found
    ]
    return rows + [
        ["all", name, score_text(dev[name]), *("" for _ in others)]
        for name in OVERALL_KEYS
        if isinstance(dev.get(name), float)
    ]


def summary(result: dict[str, Any], run: Run) -> str:
    """Return metrics of the best epoch, examples, the combiner's statistics, and conflicts.

    Beside the metrics on dev are those of the most frequent class, and those on `test` if the
    labels of any task's test examples are known.
    """
    systems = [] if run.settings["mode"] == "pretrain" else group_runs([(None, run)])
    tasks = [read_task(n, systems) for n in run.tasks if run.scores_file(n, "dev").exists()]
    constant = {one.task.name: one.majority for one in tasks if one.majority}
    further: dict[str, Any] = {"majority": constant} if constant else {}
    further |= {one: result[one] for one in ("before", "test") if one in result}
    rows = metric_rows(result["dev"], *further.values())
    lines = [text_table(["task", "metric", "dev", *further], rows)]
    each = 1 if len(tasks) > 1 else EXAMPLES
    if examples := [row for one in tasks for row in first_examples(one, systems, each)][:EXAMPLES]:
        shown_rows = text_table(["task", "dev example", "label", "prediction"], examples)
        lines.append(f"\n{shown_rows}\n")
    lines += [
        f"weights of epoch {result['best_epoch']} of {result['epochs']}, "
        f"{counted(result['steps'], 'step')} in {result['training_seconds']:.1f} s "
        f"({result['examples_per_second']} examples/s), {result['seconds']:.1f} s in all",
    ]
    if set(result["combiner_steps"]) != {"summed"}:
        lines += [f"{counted(n, 'step')}: {how}" for how, n in result["combiner_steps"].items()]
    for name, metric in run.main_scores:
        if name in constant and result["dev"][name][metric] <= constant[name][metric]:
            advice = "train longer (--epochs), or on more examples"
            lines.append(f"{name}: not better than the most frequent class; {advice}")
    lines += [conflict_line(pair, found) for pair, found in result.get("conflicts", {}).items()]
    lines += [
        f"{task}: temperature {found:.3f}, fitted on dev"
        for task, found in result.get("calibration", {}).items()
    ]
    for task, found in further.get("before", {}).items():
        metric = next(iter(found))  # the metric that selects the best epoch
        if result["dev"][task][metric] < found[metric]:
            lines.append(f"{task}: by {metric} on dev, the encoder was better before")
    return "\n".join(lines)


def conflict_line(pair: str, found: Mapping[str, Any]) -> str:
    """Return what the gradients of two tasks do to each other, and the figures behind it."""
    cosine = found["mean_cosine"]
    meaning = "pull apart" if cosine < 0 else "help each other"
    if abs(cosine) < ORTHOGONAL:
        meaning = "are nearly orthogonal: nothing to resolve"
    if found["steps"] < FEW:
        meaning = "were measured in too few steps to say"
    share = f"below 0 in {found['conflict_rate']:.0%} of {counted(found['steps'], 'step')}"
    return f"{pair}: their gradients {meaning} (mean cosine {cosine:z.2f}, {share})"


def ensemble_table(result: Mapping[str, Any]) -> str:
    """Return a table of the members' weights and main metrics, and of the ensemble's gain."""
    rows = []
    for task, found in result["members"].items():
        metric = next(iter(result["dev"][task]))
        scores = {name: metrics[metric] for name, metrics in found["dev"].items()}
        for name, score in scores.items():
            counts = str(found["weights"].get(name, 0))
            rows.append([task, name, counts, metric, f"{score:.4f}", ""])
        merged = result["dev"][task][metric]
        gain = f"{merged - max(scores.values()):+.4f}"
        rows.append([task, "ensemble", "", metric, f"{merged:.4f}", gain])
    for name in OVERALL_KEYS:
        if name in result["dev"]:
            rows.append(["all", "ensemble", "", name, f"{result['dev'][name]:.4f}", ""])
    return text_table(["task", "run", "counts", "metric", "dev", "gain on the best"], rows)
