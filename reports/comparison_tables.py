"""The tables of a comparison, as plain text, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import isinf
from pathlib import Path
from statistics import fmean
from typing import Any

from multitask.runs import Run, other_than_defaults
from reports.comparison import Comparison, Difference, compare, relative_gain, signed_ranks
from reports.scored_systems import ScoredSystem, first_task, read_systems, tasks_of
from reports.significance import p_text
from reports.systems import NO_SEED, VARYING
from reports.tables import (
    Cells,
    Section,
    latex_table,
    markdown_table,
    mean_and_spread,
    shown,
    text_table,
)
from reports.verdict import verdicts
from tasks.metrics import OVERALL_KEYS, worst_value

ALWAYS = ("encoder", "epochs", "batch_size", "lr", "limit")  # settings that are always shown


def score_section(systems: Sequence[ScoredSystem]) -> Section:
    """Return the table of all metrics over the seeds, and of gains relative to the first system."""
    columns = [(task, metric) for task in tasks_of(systems) for metric in metrics_of(task, systems)]
    totals = [name for name in OVERALL_KEYS if any(one.overall_values(name) for one in systems)]
    rows, means = [], []
    for one in systems:
        values = [one.values(task, metric) for task, metric in columns]
        values += [one.overall_values(name) for name in totals]
        gain = relative_gain(systems[0], one)
        last = "" if gain is None or one is systems[0] else f"{gain:+.2f} %"
        rows.append([one.system.name, *map(spread, values), last])
        means.append([round(fmean(found), 4) if found else None for found in values])
    header = ["system", *(f"{task} {metric}" for task, metric in columns), *totals]
    worst = [worst_value(metric) for _, metric in columns]
    errors = {place for place, value in enumerate(worst, 1) if isinf(value)}
    return Section("Scores on dev", ([*header, "relative gain"], rows), best_cells(means, errors))


def best_cells(
    means: Sequence[Sequence[float | None]], errors: Container[int] = frozenset()
) -> Cells:
    """Return row and column, after the system's name, of the best value of each column.

    It is the largest value, in the columns of `errors` the smallest.
    """
    best = set()
    for column, values in enumerate(zip(*means, strict=True), 1):
        known = [value for value in values if value is not None]
        if len(known) > 1:
            top = min(known) if column in errors else max(known)
            best |= {(row, column) for row, value in enumerate(values) if value == top}
    return frozenset(best)


def metrics_of(task: str, systems: Sequence[ScoredSystem]) -> list[str]:
    """Return the metrics of a task, the main metric first."""
    main = first_task(systems, task).kind.main_metric
    found = dict.fromkeys(
        metric
        for one in systems
        for several in one.metrics.get(task, {}).values()
        for metric in several
    )
    return sorted(found, key=lambda metric: metric != main)


def spread(values: Sequence[float]) -> str:
    """Format values as mean ± standard deviation (number of seeds)."""
    if not values:
        return ""
    found = mean_and_spread(values, 4)
    return f"{found} ({len(values)})" if len(values) > 1 else found


def system_section(systems: Sequence[ScoredSystem]) -> Section:
    """Return the table of settings, seeds, and the training time per seed of each system."""
    rows = []
    for one in systems:
        runs = one.system.runs
        rows.append(
            [
                one.system.name,
                " ".join(one.system.tasks),
                settings_text(runs),
                " ".join(map(str, one.real_seeds(*one.metrics))),
                str(len(runs)),
                training_time(runs),
                machine_text(runs),
            ]
        )
    header = ["system", "tasks", "settings", "seeds", "runs", "training per seed", "machine"]
    return Section("Systems", (header, rows), numbers=False)


def settings_text(runs: Sequence[Run]) -> str:
    """Return the main settings of a system and those that are not defaults."""
    values: dict[str, dict[str, None]] = {}
    for run in runs:
        always = {key: run.settings[key] for key in ALWAYS if run.settings.get(key) is not None}
        for key, value in {**always, **other_than_defaults(run.settings)}.items():
            if key not in VARYING:
                values.setdefault(key, {})[shown(short(value))] = None
    start = ["pre-trained"] if any(run.settings.get("init") for run in runs) else []
    found = [f"{key.replace('_', ' ')} {' or '.join(several)}" for key, several in values.items()]
    return ", ".join(start + found)


def short(value: Any) -> Any:
    """Return a setting with the last part of absolute paths, which a table has room for."""
    if isinstance(value, list):
        return [short(one) for one in value]
    is_path = isinstance(value, str) and Path(value).is_absolute()
    return Path(value).name if is_path else value


def training_time(runs: Sequence[Run]) -> str:
    """Return the mean over the seeds of the time that the runs of a seed trained."""
    seconds: dict[Any, float] = {}
    for run in runs:
        time = run.metrics.get("training_seconds")
        if time is None:
            return ""
        seed = run.settings.get("seed")
        seconds[seed] = seconds.get(seed, 0.0) + time
    mean = fmean(seconds.values())
    return f"{mean:.0f} s" if mean < 120 else f"{mean / 60:.1f} min"


def machine_text(runs: Sequence[Run]) -> str:
    """Return the processors that the runs trained on."""
    found: dict[str, None] = {}
    for run in runs:
        place: Mapping[str, Any] = run.metrics.get("environment", {})
        if place.get("gpu", "none") != "none":
            found[str(place["gpu"])] = None
        elif "cpu" in place:
            found[f"{place['cpu']}, threads: {place.get('threads', '?')}"] = None
    return " or ".join(found)


def test_section(comparison: Comparison) -> Section:
    """Return the table that compares each system with the first one on each task, and overall."""
    rows = []
    for one in comparison.differences:
        low, high = one.interval
        rows.append(
            [
                one.system,
                one.task,
                one.metric,
                f"{one.examples:,}",
                f"{one.difference:+.4f}",
                f"{low:+.4f} to {high:+.4f}",
                "yes" if one.clear else "no",
                mcnemar_text(one),
            ]
        )
    header = ["system", "task", "metric", "n", "difference", "95 % interval", "clear"]
    title = f"Against {comparison.first.system.name}: the same examples"
    return Section(title, ([*header, "McNemar p, one run (seed)"], rows))


def mcnemar_text(found: Difference) -> str:
    if found.mcnemar is None or found.seeds is None:
        return ""
    one, other = ("no seed" if seed == NO_SEED else str(seed) for seed in found.seeds)
    return f"{p_text(found.mcnemar)} ({one if one == other else f'{one} and {other}'})"


def cell_section(systems: Sequence[ScoredSystem]) -> Section:
    """Return Wilcoxon's test of each system against the first one over (task, seed) cells."""
    first, others = systems[0], systems[1:]
    rows = [
        [one.system.name, str(cells), "not testable" if p is None else p_text(p)]
        for one, (p, cells) in zip(others, signed_ranks(first, others), strict=True)
    ]
    title = f"Against {first.system.name}: (task, seed) cells"
    return Section(title, (["system", "paired cells", "Wilcoxon p (Holm)"], rows))


def sections(comparison: Comparison) -> list[Section]:
    """Return the tables of a comparison; those without rows are left out."""
    systems = comparison.systems
    found = [
        score_section(systems),
        system_section(systems),
        test_section(comparison),
        cell_section(systems),
        left_out_section(comparison.first),
    ]
    return [one for one in found if one.table[1]]


def left_out_section(one: ScoredSystem) -> Section:
    """Return a table of the dev examples that selected an ensemble's members."""
    rows = [
        [task, f"{count:,}", f"{count + one.dev_examples(task):,}"]
        for task, count in one.left_out.items()
        if one.seeds(task)
    ]
    return Section(
        "Dev examples left out: they selected members",
        (["task", "left out", "of"], rows),
    )


CLEAR = "A difference is clear if its 95 % interval over examples and seeds excludes 0."
CELLS = (
    "A cell is the main metric of one task with one seed; Wilcoxon's signed-rank test asks whether "
    "one system is above the other over all cells that both have, and needs six of them."
)
NOTES = (
    "Mean ± standard deviation over the seeds (their number); the best mean of a column is bold. "
    "The relative gain is the mean over the tasks of the main metric's relative change (Maninis et "
    "al., 2019). Training per seed is the time of all runs of a seed, without dev scores; times of "
    "other machines or numbers of threads cannot be compared. Intervals: paired bootstrap over the "
    "examples and the seeds, 2,000 samples, of the difference of the means over the seeds. "
    f"{CLEAR} With one seed they do not contain the "
    "variation of seeds, with two or three they are rough. McNemar's exact test compares one run "
    "of each system, with the given seeds; this test "
    "and the intervals are not adjusted for multiple tests. "
    f"{CELLS} Its p is Holm-adjusted, and too small for cells that come from one multi-task run or "
    "pre-training."
)


def as_markdown(comparison: Comparison) -> str:
    tables = [
        f"## {one.title}\n\n{markdown_table(*one.table, one.best)}\n"
        for one in sections(comparison)
    ]
    sentences = [f"{text}\n" for text in verdicts(comparison)]
    return "\n".join([*sentences, *tables, NOTES]) + "\n"


def as_latex(comparison: Comparison) -> str:
    """Return LaTeX tables for the package booktabs."""
    parts = [
        latex_table(*one.table, caption=one.title, best=one.best) for one in sections(comparison)
    ]
    sentences = [f"% {text}" for text in verdicts(comparison)]
    return "\n".join([*sentences, *parts, f"% {NOTES}"]) + "\n"


def as_text(comparison: Comparison) -> str:
    tables = [f"{one.title}\n\n{text_table(*one.table)}" for one in sections(comparison)]
    notes = [f"{CLEAR} {CELLS}"] if comparison.differences else []
    return "\n\n".join([*verdicts(comparison), *tables, *notes])


def compared(folders: Sequence[tuple[str | None, Path]]) -> str:
    """Return a comparison of runs with the name of their system or None as text.

    Runs of different seeds form one system.
    """
    return as_text(compare(read_systems(folders)))
