"""One encoder for three tasks beside three encoders: run.py --mode reproduce --table sharing

The rows are those of studies/sharing_cells.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any

from reports.significance import p_text, paired_p
from reports.tables import markdown_table, mean_and_spread
from studies.claims import between, shared_seeds
from studies.results import Cell, Content
from studies.sharing_cells import EPOCHS, SEVERAL, cells
from studies.study import Report, Study, notes_of
from tasks import CS224N
from tasks.metrics import LEADERBOARD, overall

READING = (
    "Mean ± standard deviation over the seeds on dev, in per cent; the best epoch was chosen on "
    "the same dev. The differences are those of the overall score, from *singles*, over the seeds "
    "that both have, with the p of a paired t-test where there are three. "
    "Milliseconds are the time to encode a text for all three tasks. Each different encoder "
    "encodes it once: three for *singles*, two for a branch of one task."
)
MEANING = {
    "singles": "three encoders, one per task",
    "cross-encoders": "read both texts of a pair as one sequence, cannot embed a text",
    "one-task-per-step": "one encoder; each step has the batch of one task",
    "joint-sum": "each step has a batch of every task, and adds up their gradients",
    "joint-pcgrad": "each step has a batch of every task; PCGrad",
    "joint-famo": "each step has a batch of every task; FAMO",
    "layer-decay": "one task per step, lower rates in lower layers",
    "label-smoothing": "one task per step, label smoothing of 0.1",
    "branches": "one task per step, a copy of the upper half of the layers for sst, another for "
    "sts",
    "auxiliary": "one task per step, SST-2 as an auxiliary task",
    "teachers": "one task per step; learns from one single-task run per task",
    "cross-teachers": "one task per step; learns from a run of sst and two cross-encoders",
}


System = Mapping[int, Sequence[Content]]  # seed -> figures of its runs, one per encoder


def members(report: Report) -> dict[str, list[Cell]]:
    """Return the cells of the encoders of each row of the tables."""
    shared = [one for one in report.cells if set(CS224N) <= {*one.config.tasks}]
    several = {title: [report.cell(name) for name in names] for title, names in SEVERAL.items()}
    return several | {one.name: [one] for one in shared}


def systems(report: Report) -> dict[str, System]:
    """Return the rows of the tables that have a seed with all of their runs."""
    found: dict[str, System] = {}
    for title, several in members(report).items():
        figures = [report.results.figures_by_seed(one) for one in several]
        if seeds := shared_seeds(figures):
            found[title] = {seed: [one[seed] for one in figures] for seed in sorted(seeds)}
    return found


def scores(dev: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the leaderboard's metric of each task in dev metrics, and the overall score."""
    merged = {task: one[task] for one in dev for task in CS224N if task in one}
    found = {task: merged[task][LEADERBOARD[task]] for task in CS224N if task in merged}
    both = overall(merged)
    return found | ({"overall": both["overall"]} if both else {})


def minutes(system: System) -> float:
    """Return the minutes of training of a system's encoders, each in its fastest run.

    Runs with other seeds do the same work: what they take longer is other work on the machine.
    """
    encoders = zip(*system.values(), strict=True)
    return sum(min(one["training_seconds"] for one in runs) for runs in encoders) / 60


def within(runs: Sequence[Content], share: float) -> list[Mapping[str, Any]]:
    """Return the best dev metrics of each run after a share of its epochs, at least one epoch."""
    found = []
    for one in runs:
        history = one["history"][: max(1, round(share * len(one["history"])))]
        found.append(max(history, key=lambda epoch: epoch["selection_score"])["dev"])
    return found


def table(report: Report, every: Mapping[str, System], budget: float = inf) -> str:
    """Return the table of all systems, after the epochs that fit into a number of minutes."""
    by_system = dict[str, dict[int, dict[str, float]]]()
    for title, system in every.items():
        share = min(1, budget / minutes(system))
        by_system[title] = {seed: scores(within(runs, share)) for seed, runs in system.items()}
    reference, of_row = by_system.get("singles", {}), members(report)
    header = ["", "seeds", "SST", "QQP", "STS", "overall", "from singles"]
    header += ["examples", "parameters", "minutes"]
    rows = []
    for title, by_seed in by_system.items():
        several, runs = list(by_seed.values()), list(every[title].values())
        row = [title, str(len(several))]
        for key in (*CS224N, "overall"):
            values = [100 * one[key] for one in several if key in one]
            row.append(mean_and_spread(values, 1) if values else "")
        row.append("" if title == "singles" else difference(by_seed, reference))
        seen = [one["examples_per_second"] * one["training_seconds"] for one in runs[0]]
        row.append(f"{sum(seen) / 1000:.0f} k")
        row.append(f"{sum(one['parameters'] for one in runs[0]) / 1e6:.1f} M")
        row.append(f"{minutes(every[title]):.0f}{teaching_minutes(report, of_row[title])}")
        times = [sum(one["encode_ms"] for one in few) for few in runs if "encode_ms" in few[0]]
        rows.append([*row, f"{min(times):.2f}" if times else ""])
    return markdown_table([*header, "ms per text"], rows)


def teaching_minutes(report: Report, several: Sequence[Cell]) -> str:
    """Return the minutes of training of all teachers, as ` + 12`; empty without teachers."""
    runs = {(one.name, seed): one for cell in several for one, seed in cell.teacher_runs()}
    seconds = [
        report.results.values(teacher, "training_seconds").get(seed, 0.0)
        for (_, seed), teacher in runs.items()
    ]
    return f" + {sum(seconds) / 60:.0f}" if seconds else ""


def difference(
    mine: Mapping[int, Mapping[str, float]], theirs: Mapping[int, Mapping[str, float]]
) -> str:
    """Format the mean difference of overall scores in points, with its p from three seeds on."""
    first, second = (
        {seed: 100 * one["overall"] for seed, one in several.items() if "overall" in one}
        for several in (mine, theirs)
    )
    values = list(between(first, second).values())
    if not values:
        return ""
    p = paired_p(values)
    return f"{fmean(values):+.2f}" + ("" if p is None else f" (p {p_text(p, digits=3)})")


def page(report: Report) -> list[str]:
    """Return the parts of the page: equal examples, and equal minutes."""
    every, epochs = systems(report), report.request.epochs or EPOCHS
    parts = [notes_of(STUDY, report.request), READING]
    if not every:
        return [*parts, "No system has all of its runs yet."]
    whole = [every[title] for title in every if title != "cross-encoders"]
    # The times of runs differ by other work on the machine: those of the reference decide.
    reference = [every["singles"]] if "singles" in every else whole
    budget = min(map(minutes, reference), default=0.0)
    return [
        *parts,
        report.results.measured(report.cells),
        "Dev was scored for each of these recipes:",
        markdown_table(["row", "what it is"], [[title, MEANING[title]] for title in every]),
        "## Equal passes",
        f"Each system makes {epochs} passes over its training examples. Only rows with further or "
        "auxiliary examples see more examples. Minutes are those of the fastest run of each "
        "encoder, and + those of teachers.",
        table(report, every),
        "## Equal minutes",
        f"The best epoch of those that fit into {budget:.0f} minutes, the time of *singles* (or, "
        "without them, of the fastest system), rounded to whole epochs, without the minutes of "
        "teachers. "
        f"Learning rates fall until epoch {epochs}, so that fewer epochs are at a disadvantage.",
        table(report, every, budget),
    ]


STUDY = Study(
    name="sharing",
    title="One encoder for three tasks, beside three encoders",
    notes="rates chosen on held-out training examples, "
    "and so were the 24,000 examples of SST-2 as an auxiliary task. But dev "
    "chose which tasks have branches. Quora's figures are flattered, for the "
    "encoder's own training data holds duplicates of Quora.",
    cells=cells,
    page=page,
    precision="bf16",
    options=("seeds", "epochs", "lr"),
    by_beginning=False,
    audited=True,
)
