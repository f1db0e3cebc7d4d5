"""One encoder for three tasks beside three encoders: run.py --mode reproduce --table sharing

All training examples of each task are used, at the tasks' natural sizes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from multitask.assembly import load_trained
from multitask.config import RunConfig
from reports.significance import p_text, paired_p
from reports.tables import markdown_table, mean_and_spread
from studies.bees.cells import TUNED
from studies.claims import between, shared_seeds
from studies.cost import encoder_config
from studies.results import Cell, Content
from studies.runner import long_training
from studies.study import Report, Study, StudyRequest, notes_of
from tasks import CS224N, data_folder
from tasks.metrics import LEADERBOARD, overall

SEEDS = (11711, 1, 2)
TEACHER_SEEDS = (11711,)  # of the runs that others learn from
EPOCHS = 3
ENCODED = 500  # dev examples of each task whose texts are encoded to take the time
# The rate was chosen on held-out training examples: results/sharing-rates.
ONE_TASK: dict[str, Any] = {
    "sampling": "annealed",
    "schedule": "individual",
    "lr": 5e-5,
    "head_lr": 5e-5,
}
FASTER = {"lr": 1e-4, "head_lr": 1e-4}
JOINT: dict[str, Any] = {"sampling": "annealed"}
AUXILIARY: dict[str, Any] = {"auxiliary": ("sst2",), "limit": {"sst2": 24_000}}
LORA: dict[str, Any] = {
    "adapter": "lora",
    "adapter_rank": 32,
    "adapter_alpha": 32.0,
    "adapter_targets": ("query", "key", "value", "output", "up", "down"),
}
# Tasks with their own copy of the upper half of the layers; the others keep the shared ones.
BRANCHES: dict[str, Any] = {"adapter": "copies", "adapter_only": ("sst", "sts")}
BRANCH_OF_SST = BRANCHES | {"adapter_only": ("sst",)}
BRANCH_OF_STS = BRANCHES | {"adapter_only": ("sts",)}
AVERAGE: dict[str, Any] = {"average_weights": 0.999}
# Shared models without teachers: name -> settings.
SHARED: Mapping[str, Mapping[str, Any]] = {
    "one-task-per-step": ONE_TASK,
    "joint-sum": JOINT,
    "joint-pcgrad": JOINT | {"combiner": "pcgrad"},
    "joint-gradvac": JOINT | {"combiner": "gradvac"},
    "joint-famo": JOINT | {"combiner": "famo"},
    "average-weights": ONE_TASK | AVERAGE,
    "layer-decay": ONE_TASK | {"layer_decay": 0.95},
    "label-smoothing": ONE_TASK | {"label_smoothing": 0.1},
    "sst-corn": ONE_TASK | {"task_options": {"sst": {"loss": "corn"}}},
    "sst-distance": ONE_TASK | {"task_options": {"sst": {"loss": "distance"}}},
    "qqp-closure": ONE_TASK | {"task_options": {"qqp": {"closure": "all"}}},
    "lora": ONE_TASK | LORA,
    "branches": ONE_TASK | BRANCHES,
    "auxiliary": ONE_TASK | AUXILIARY,
}
CROSSED = ("qqp", "sts")  # tasks on pairs
# The cross-encoder of sts has a lower score on dev than its bi-encoder: `together` does without it.
TEACHING = ("auxiliary-sst", "qqp", "sts", "cross-qqp")
TOGETHER = "together"
BEST = "branch-sts-teachers"  # by dev, of the rows with three seeds
READING = (
    "*Singles* are three encoders, one per task; *cross-encoders* read both texts of a pair as one "
    "sequence and cannot embed a text: they are teachers and an upper bound. All other rows are "
    "one shared encoder. *Singles with the same means* learn as *together* does, *singles with "
    "(more) teachers* from the teachers of *branch-sts-(more-)teachers* and with the same average "
    "of weights, each on its own task. Mean ± standard deviation over the seeds on dev, in per "
    "cent; the best epoch was chosen on the same dev. The difference is that of the overall score "
    "from *singles*, over the seeds that both have, with the p of a paired t-test where there are "
    "three. Milliseconds are those of encoding a text for all tasks: once, or once per task by "
    "singles and by the merged exports of adapters."
)


def timed_training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run; return its figures, its parameters and milliseconds per encoded text.

    With adapters a text is encoded once for each different encoder, by its merged export, which has
    the layers of the shared one: the time is that of the shared one times their number.
    """
    found = long_training(config, folder)
    _, tasks, model = load_trained(folder, config.device)
    found["parameters"] = sum(one.numel() for one in model.parameters())
    if any(task.joint for task in tasks.values()):  # no embeddings of single texts
        return found
    examples = [task.read(data_folder(config.data), "dev", ENCODED) for task in tasks.values()]
    texts = [text for one in examples for column in one.texts for text in column]
    begin = time.perf_counter()
    model.bi_encoder.encode(texts, precision=config.precision)
    seconds = time.perf_counter() - begin
    passes = len({task if task in model.adapters else None for task in config.main_tasks})
    return found | {"encode_ms": round(passes * 1000 * seconds / len(texts), 3)}


def cells(request: StudyRequest) -> list[Cell]:
    """Return the cells of single tasks, of cross-encoders and of shared models."""
    base = request.base.changed(epochs=request.epochs or EPOCHS)
    upper = encoder_config(base.encoder).num_layers // 2

    def single(
        task: str,
        name: str,
        seeds: Sequence[int] = SEEDS,
        teachers: Sequence[Cell] = (),
        **more: Any,
    ) -> Cell:
        rate = request.lr or TUNED.get(base.encoder, {}).get((task,), base.optimizer.lr)
        settings = {"lr": rate, "head_lr": rate} | more
        return cell(name, base.changed(tasks=(task,), **settings), seeds, teachers)

    def shared(
        name: str,
        teachers: Sequence[Cell] = (),
        seeds: Sequence[int] = SEEDS,
        tasks: Sequence[str] = CS224N,
        **more: Any,
    ) -> Cell:
        settings = {"mode": "multitask", "tasks": (*tasks, *more.get("auxiliary", ())), **more}
        settings |= {"lr": request.lr, "head_lr": request.lr} if request.lr else {}
        settings |= {} if base.limit is None else {"limit": base.limit}
        if settings.get("adapter") == "copies":
            settings["adapter_top_layers"] = upper
        return cell(name, base.changed(**settings), seeds, teachers)

    singles = [single(task, task) for task in CS224N]
    crossed = [
        single(task, f"cross-{task}", TEACHER_SEEDS, task_options={task: {"pair": "joint"}})
        for task in CROSSED
    ]
    plain = [replace(one, seeds=TEACHER_SEEDS) for one in singles]  # those that are teachers
    sentiment = {"tasks": ("sst",), **ONE_TASK, **AUXILIARY}
    helped = shared("auxiliary-sst", (), TEACHER_SEEDS, **sentiment)
    every = {one.name: one for one in (*plain, *crossed, helped)}
    chosen = [every[name] for name in TEACHING]
    taught = [*plain, crossed[0]]
    more = [singles[0], helped, plain[1], crossed[0], singles[2]]
    fast, joint = ONE_TASK | FASTER | AVERAGE, JOINT | FASTER | AVERAGE
    return [
        *singles,
        *crossed,
        helped,
        *(shared(name, **settings) for name, settings in SHARED.items()),
        shared("teachers", plain, **ONE_TASK),
        shared("teachers-1e-4", taught, **fast),
        shared("branches-teachers", taught, **fast, **BRANCHES),
        shared("branch-sst-teachers", taught, **fast, **BRANCH_OF_SST),
        shared(BEST, taught, **fast, **BRANCH_OF_STS),
        shared("branch-sts-more-teachers", more, **fast, **BRANCH_OF_STS),
        shared("joint-teachers", taught, **joint),
        shared("cross-teachers", [plain[0], *crossed], **ONE_TASK),
        shared(TOGETHER, chosen, **ONE_TASK, **LORA, **AUXILIARY, **AVERAGE),
        shared(f"{TOGETHER}-sst", [helped], **sentiment, **AVERAGE),
        *(single(t, f"{TOGETHER}-{t}", SEEDS, of_task(t, chosen), **AVERAGE) for t in CROSSED),
        *(
            single(task, f"{task}-{name}", SEEDS, of_task(task, several), **AVERAGE)
            for name, several in (("teachers", taught), ("more-teachers", more))
            for task in CS224N
        ),
    ]


def of_task(task: str, several: Sequence[Cell]) -> list[Cell]:
    """Return the cells whose runs have a task."""
    return [one for one in several if task in one.config.tasks]


def cell(name: str, config: RunConfig, seeds: Sequence[int], teachers: Sequence[Cell]) -> Cell:
    """Return a cell whose runs learn from all runs of `teachers`."""
    if teachers:
        runs = [one.run_name(seed) for one in teachers for seed in one.seeds]
        config = config.changed(teacher=tuple(runs))
    return Cell(
        name, config, tuple(seeds), timed_training, keeps_folder=True, teachers=tuple(teachers)
    )


System = Mapping[int, Sequence[Content]]  # seed -> figures of its runs, one per encoder


def systems(report: Report) -> dict[str, System]:
    """Return the rows of the tables that have a seed with all of their runs."""
    shared = [one.name for one in report.cells if set(CS224N) <= {*one.config.tasks}]
    parts = {
        "singles": list(CS224N),
        "cross-encoders": [f"cross-{task}" for task in CROSSED],
        **{name: [name] for name in shared},
        "singles with the same means": [f"{TOGETHER}-{task}" for task in CS224N],
        "singles with teachers": [f"{task}-teachers" for task in CS224N],
        "singles with more teachers": [f"{task}-more-teachers" for task in CS224N],
    }
    found: dict[str, System] = {}
    for title, members in parts.items():
        figures = [report.results.figures_by_seed(report.cell(name)) for name in members]
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
    reference = by_system.get("singles", {})
    header = ["", "seeds", "SST", "QQP", "STS", "overall", "difference", "examples"]
    header += ["parameters", "minutes"]
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
        row.append(f"{minutes(every[title]):.0f}{teaching_minutes(report, title)}")
        times = [sum(one["encode_ms"] for one in few) for few in runs if "encode_ms" in few[0]]
        rows.append([*row, f"{min(times):.2f}" if times else ""])
    return markdown_table([*header, "ms per text"], rows)


def teaching_minutes(report: Report, title: str) -> str:
    """Return the minutes of training of a system's teachers, as ` + 12`; empty without teachers."""
    taught = [one for one in report.cells if one.name == title]
    seconds = [
        report.results.values(teacher, "training_seconds").get(seed, 0.0)
        for one in taught
        for teacher, seed in one.teacher_runs()
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
    parts = [notes_of(STUDY, report.request), READING, report.omitted()]
    if not every:
        return [*parts, "No system has all of its runs yet."]
    whole = [every[title] for title in every if title != "cross-encoders"]
    # The times of runs differ by other work on the machine: those of the reference decide.
    reference = [every["singles"]] if "singles" in every else whole
    budget = min(map(minutes, reference), default=0.0)
    return [
        *parts,
        report.results.measured(report.cells),
        f"Dev was scored for {len(every)} recipes.",
        "## Equal passes",
        f"Each system trains on as many examples as {epochs} passes over the training examples it "
        "has: all but those with further or auxiliary examples train on as many. Minutes are "
        "those of the fastest run of each encoder, and + those of teachers.",
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
    notes="rates chosen on held-out training examples (results/bees-rates, results/sharing-rates), "
    "and so were LoRA and the auxiliary task of *together* (24,000 examples of SST-2); dev chose "
    "its teachers, which leave out the cross-encoder of sts; no other setting was chosen for these "
    "data. Quora's figures are flattered, for the encoder's own training data "
    "holds duplicates of Quora.",
    cells=cells,
    page=page,
    precision="bf16",
    options=("seeds", "epochs", "lr"),
    by_beginning=False,
    audited=True,
)
