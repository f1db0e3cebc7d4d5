"""The tables of a comparison in Markdown and LaTeX, and the comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common.errors import UserError
from ensemble.alignment import aligned
from reports.comparison import Difference, compare_on_task, relative_gain, signed_ranks
from reports.figures import all_figures, svg
from reports.store import read_run
from reports.systems import (
    NO_SEED,
    ScoredSystem,
    group_runs,
    runs_of,
    score_systems,
    task_of,
    tasks_of,
)
from reports.tables import Table, latex_table, markdown_table, mean_and_spread, text_table
from tasks import data_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Sections = list[tuple[str, Table]]
OVERALL = ("overall", "overall_plain_mean")


def score_table(systems: Sequence[ScoredSystem]) -> Table:
    """Return the table of all metrics over the seeds, and of gains relative to the first system."""
    columns = [(task, metric) for task in tasks_of(systems) for metric in metrics_of(task, systems)]
    totals = [name for name in OVERALL if any(one.overall_values(name) for one in systems)]
    rows = []
    for one in systems:
        cells = [spread(one.values(task, metric)) for task, metric in columns]
        cells += [spread(one.overall_values(name)) for name in totals]
        gain = relative_gain(systems[0], one)
        cells.append("" if gain is None or one is systems[0] else f"{gain:+.2f} %")
        rows.append([one.system.name, *cells])
    header = [
        "system",
        *(f"{task} {metric}" for task, metric in columns),
        *totals,
        "relative gain",
    ]
    return header, rows


def metrics_of(task: str, systems: Sequence[ScoredSystem]) -> list[str]:
    """Return the metrics of a task, the main metric first."""
    main = task_of(task, runs_of(systems)).kind.main_metric
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


def test_table(systems: Sequence[ScoredSystem]) -> Table:
    """Return the table that compares each system with the first one on each task."""
    first, rows = systems[0], []
    for other in systems[1:]:
        for task in first.system.tasks:
            if task not in other.system.tasks:
                continue
            found = compare_on_task(first, other, task)
            low, high = found.interval
            rows.append(
                [
                    found.system,
                    task,
                    found.metric,
                    f"{found.difference:+.4f}",
                    f"{low:+.4f} to {high:+.4f}",
                    mcnemar_text(found),
                ]
            )
    return ["system", "task", "metric", "difference", "95 % interval", "McNemar p (seed)"], rows


def mcnemar_text(found: Difference) -> str:
    if found.mcnemar is None:
        return ""
    one, other = ("no seed" if seed == NO_SEED else str(seed) for seed in found.seeds)
    return f"{p_text(found.mcnemar)} ({one if one == other else f'{one} and {other}'})"


def cell_table(systems: Sequence[ScoredSystem]) -> Table:
    """Return Wilcoxon's test of each system against the first one over (task, seed) cells."""
    others = systems[1:]
    rows = [
        [one.system.name, str(cells), "not testable" if p is None else p_text(p)]
        for one, (p, cells) in zip(others, signed_ranks(systems[0], others), strict=True)
    ]
    return ["system", "paired cells", "Wilcoxon p (Holm)"], rows


def p_text(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def sections(systems: Sequence[ScoredSystem]) -> Sections:
    """Return titles and tables of a comparison; the bootstrap of many runs is slow."""
    found = [("Scores on dev", score_table(systems))]
    if len(systems) > 1:
        name = systems[0].system.name
        found.append((f"Against {name}: the same examples", test_table(systems)))
        found.append((f"Against {name}: (task, seed) cells", cell_table(systems)))
    found.append(("Dev examples left out: they selected members", left_out_table(systems[0])))
    return [(title, table) for title, table in found if table[1]]


def left_out_table(one: ScoredSystem) -> Table:
    """Return a table of the dev examples on which members of an ensemble were selected."""
    rows = [
        [task, f"{count:,}", f"{count + len(one.scores[task, seeds[0]].ids):,}"]
        for task, count in one.left_out.items()
        if (seeds := one.system.seeds(task))
    ]
    return ["task", "left out", "of"], rows


NOTES = (
    "Mean ± standard deviation over the seeds (number of seeds). The relative gain is the mean "
    "over the tasks of the main metric's relative change (Maninis et al., 2019). Intervals: paired "
    "bootstrap over the examples, 2,000 samples, of the difference of the means over the seeds. "
    "McNemar's exact test compares one run of each system, with the given seeds; this test and the "
    "intervals are not adjusted for multiple tests. Wilcoxon's signed-rank test needs six pairs; p "
    "is Holm-adjusted, and too small for cells that come from one multi-task run or pre-training."
)


def as_markdown(found: Sections) -> str:
    parts = [f"## {title}\n\n{markdown_table(*table)}\n" for title, table in found]
    return "\n".join([*parts, NOTES]) + "\n"


def as_latex(found: Sections) -> str:
    """Return LaTeX tables for the package booktabs."""
    parts = [latex_table(*table, caption=title) for title, table in found]
    return "\n".join([*parts, f"% {NOTES}"]) + "\n"


def compared(folders: Sequence[Path]) -> str:
    """Return the tables of a comparison as text; runs of different seeds form one system."""
    scored = score_systems(group_runs([(None, read_run(folder)) for folder in folders]))
    return "\n\n".join(f"{title}\n\n{text_table(*table)}" for title, table in sections(scored))


SHOWN = 8  # examples per task


@dataclass(frozen=True)
class Disagreement:
    """One example: its texts, its label, and the prediction of each system."""

    texts: tuple[str, ...]
    label: str
    predictions: tuple[str, ...]


def disagreements(
    systems: Sequence[ScoredSystem], task: str, count: int = SHOWN
) -> list[Disagreement] | None:
    """Return examples on which systems predict other classes, or other similarities (2 decimals).

    They are sorted by the largest distance between two systems' probabilities (total variation)
    or similarities, from the first seed of each. Returns None if fewer than two systems have the
    task, or if the data of the runs cannot be found.
    """
    having = [one for one in systems if task in one.metrics]
    if len(having) < 2:
        return None
    known = [run.config.get("data") for one in having for run in one.system.runs]
    data = next((one for one in known if one is not None), None)  # merged runs record none
    if data is None:
        return None
    try:
        examples = having[0].system.task(task).read(data_folder(str(data)), "dev")
    except (UserError, OSError):
        return None
    row_of = {one: row for row, one in enumerate(examples.ids)}
    table = aligned(
        {str(i): one.scores[task, one.system.seeds(task)[0]] for i, one in enumerate(having)},
        having[0].system.task(task).kind.predictions,
    )
    assert table.targets is not None
    similarities = table.values.ndim == 2
    distance = np.max([distances(*pair) for pair in combinations(table.values, 2)], axis=0)
    found: list[Disagreement] = []
    for row in np.lexsort((table.ids, -distance)):
        if (place := row_of.get(str(table.ids[row]))) is None:
            return None  # the data is not that of the runs
        predictions = table.predictions[:, row]
        shown = tuple(f"{value:z.2f}" if similarities else f"{value:.0f}" for value in predictions)
        if len(set(shown)) > 1:  # probabilities may differ although the class is the same
            texts = tuple(column[place] for column in examples.texts)
            found.append(Disagreement(texts, f"{table.targets[row]:g}", shown))
        if len(found) == count:
            break
    return found


def distances(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return distances (N,) of similarities (N,), or total variation of probabilities (N, C)."""
    distance = np.abs(values.astype(np.float64) - others)
    return distance if distance.ndim == 1 else distance.sum(1) / 2


TEMPLATE = Path(__file__).with_name("page.html")


def comparison_page(
    systems: Sequence[ScoredSystem],
    tables: Sections,
    further: Mapping[str, Sequence[Figure]] | None = None,
) -> str:
    """Return the HTML text; `further` figures by title follow those of every comparison.

    Text from data, names of runs and settings is escaped.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    figures = {**all_figures(systems), **(further or {})}
    examples = []
    for task in tasks_of(systems):
        if (found := disagreements(systems, task)) is not None:
            names = [one.system.name for one in systems if task in one.metrics]
            examples.append((task, names, found))
    runs = sum(len(one.system.runs) for one in systems)
    template = Environment(autoescape=True, trim_blocks=True).from_string(TEMPLATE.read_text())
    return template.render(
        title="Comparison: " + " | ".join(one.system.name for one in systems),
        summary=f"{len(systems)} systems, {runs} runs; scores on dev, which chose the best epochs.",
        tables=[(title, *table) for title, table in tables],
        notes=NOTES,
        # The figures are markup; their texts were escaped when they were drawn.
        figures=[
            (title, [Markup(svg(figure, title, i)) for i, figure in enumerate(several)])
            for title, several in figures.items()
        ],
        disagreements=examples,
    )
