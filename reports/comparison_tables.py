"""The tables of a comparison, as plain text, Markdown, CSV and an HTML page without a network."""

import csv
import io
from base64 import b64encode
from collections.abc import Sequence
from math import isinf
from pathlib import Path
from statistics import fmean

from multitask.runs import Run
from reports.comparison import Comparison, verdicts
from reports.examples import example_section
from reports.scores import overall_figures, overall_tasks
from reports.systems import NO_SEED, System, settings_of
from reports.tables import Section, markdown_table, mean_and_spread, text_table
from tasks.metrics import OVERALL, worst_value

TEMPLATE = Path(__file__).with_name("page.html")
ALWAYS = ("encoder", "epochs", "batch_size", "limit")  # settings that are always shown
CONSTANT = "the most frequent class"  # the row of a constant prediction


def score_section(found: Comparison) -> Section:
    """Return the table of all metrics over the seeds, of dev and, of the main ones, of test."""
    columns: dict[str, list[list[float]]] = {}
    constant: dict[str, str] = {}
    errors = set()
    for task, one in found.tasks.items():
        names = sorted(one.task.kind.metric_names, key=lambda name: name != one.metric)
        for name in names:
            title = f"{task} {name}"
            columns[title] = [one.figures(system.name, name) for system in found.systems]
            constant[title] = f"{one.majority[name]:.4f}" if name in one.majority else ""
            errors |= {title} if isinf(worst_value(name)) else set()
        tests = [test_figures(system, task, one.metric) for system in found.systems]
        if any(tests):
            columns[f"{task} {one.metric}, test"] = tests
    if names := overall_tasks(found.tasks):
        columns[OVERALL] = [overall_figures(s.name, found.tasks, names) for s in found.systems]
    best = set()
    for place, (title, several) in enumerate(columns.items(), 1):
        means = {row: round(fmean(values), 4) for row, values in enumerate(several) if values}
        if len(means) > 1:
            top = (min if title in errors else max)(means.values())
            best |= {(row, place) for row, mean in means.items() if mean == top}
    rows = [
        [system.name, *(mean_and_spread(several[row]) for several in columns.values())]
        for row, system in enumerate(found.systems)
    ]
    rows += [[CONSTANT, *(constant.get(title, "") for title in columns)]] * any(constant.values())
    return Section("Scores on dev", (["system", *columns], rows), frozenset(best))


def test_figures(system: System, task: str, metric: str) -> list[float]:
    """Return a metric on test by seed, of the runs whose labels of test are known."""
    several = [run for (name, _), run in sorted(system.cells.items()) if name == task]
    found = (run.metrics.get("test", {}).get(task, {}).get(metric) for run in several)
    return [value for value in found if value is not None]


def system_section(systems: Sequence[System]) -> Section:
    """Return the table of settings, runs and training time of each system."""
    rows = [
        [
            one.name,
            " ".join(one.tasks),
            ", ".join(dict.fromkeys(text for run in one.runs for text in settings_of(run, ALWAYS))),
            str(len(one.runs)),
            ", ".join(dict.fromkeys(f"{run.metrics.get('steps', 0):,}" for run in one.runs)),
            training_time(one.runs),
        ]
        for one in systems
    ]
    header = ["system", "tasks", "settings", "runs", "steps", "training per seed"]
    return Section("Systems", (header, rows), numbers=False)


def training_time(runs: Sequence[Run]) -> str:
    """Return the mean over the seeds of the time that the runs of a seed trained."""
    if any("training_seconds" not in run.metrics for run in runs):  # merged runs are not trained
        return ""
    times = [run.metrics["training_seconds"] for run in runs]
    mean = sum(times) / len({run.settings.get("seed") for run in runs})
    return f"{mean:.0f} s" if mean < 120 else f"{mean / 60:.1f} min"


def difference_section(found: Comparison) -> Section:
    """Return the table that compares each system with the first one on each task, and overall."""
    rows = [
        [
            one.system,
            one.task,
            one.metric,
            f"{one.examples:,}",
            f"{one.difference:+.4f}",
            "{:+.4f} to {:+.4f}".format(*one.interval),
            "yes" if one.clear else "no",
        ]
        for one in found.differences
    ]
    header = ["system", "task", "metric", "n", "difference", "95 % interval", "clear"]
    return Section(f"Against {found.first}", (header, rows))


def sections(found: Comparison) -> list[Section]:
    """Return the tables of scores, of differences if there are several systems, and of systems."""
    against = [difference_section(found)] if found.differences else []
    return [score_section(found), *against, system_section(found.systems)]


CLEAR = "A difference is clear if its 95 % interval over examples and seeds excludes 0."
NOTES = (
    "Scores are means ± standard deviations over seeds, with the number of seeds in brackets. The "
    "best mean of a column is bold. Dev chose the best epochs. Overall is the mean of the main "
    "metrics, with correlations scaled to 0..1. Training per seed is the time of all runs of a "
    "seed. Compare it only on the same machine and number of threads. The intervals are from a "
    "paired bootstrap over examples and seeds, 2,000 samples, not adjusted for several "
    f"comparisons. {CLEAR} With one seed, an interval lacks the variation of seeds. With two or "
    "three, it is rough. Examples are from the first seed. Right answers are bold."
)


def as_markdown(found: Comparison) -> str:
    tables = [
        f"## {one.title}\n\n{markdown_table(*one.table, one.best)}\n" for one in sections(found)
    ]
    return "\n".join([*(f"{text}\n" for text in verdicts(found)), *tables, NOTES]) + "\n"


def as_text(found: Comparison) -> str:
    tables = [f"{one.title}\n\n{text_table(*one.table)}" for one in sections(found)]
    return "\n\n".join([*verdicts(found), *tables, *([CLEAR] if found.differences else [])])


def as_csv(found: Comparison) -> str:
    """Return every score on dev with its system, task, seed and metric, for other programs."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["system", "task", "seed", "metric", "value"])
    for task, one in found.tasks.items():
        for (system, seed), metrics in one.metrics.items():
            for metric, value in metrics.items():
                shown_seed = "" if seed == NO_SEED else seed
                table.writerow([system, task, shown_seed, metric, f"{value:.6f}"])
    return text.getvalue()


def comparison_page(found: Comparison, figures: Sequence[Path]) -> str:
    """Return the HTML text with SVG files; text from data, names and settings is escaped."""
    from jinja2 import Environment

    tables = sections(found)
    examples = (example_section(one, found.systems) for one in found.tasks.values())
    tables += [section for section in examples if section.table[1]]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text("utf-8")).render(
        names=[one.name for one in found.systems],
        verdicts=verdicts(found),
        tables=tables,
        notes=NOTES,
        figures={file.stem: b64encode(file.read_bytes()).decode() for file in figures},
    )
