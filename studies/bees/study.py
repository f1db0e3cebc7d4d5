"""The page, the figures and the ensemble of the BEES study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reports.comparison_figures import similarity_distribution
from reports.confusion import confusion
from reports.figures import save_figure
from reports.scored_systems import ScoredSystem, read_systems
from reports.tables import Table, beside, markdown_table, mean_and_spread
from studies.bees.cells import CURVES, ENSEMBLE, EVERY, FURTHER, ROWS, SEEDS, cells, is_wanted
from studies.bees.claims import best_run, claims, merged_members
from studies.figures import draw_curve
from studies.results import Content
from studies.study import Report, Study, notes_of, printed
from tasks.metrics import LEADERBOARD, overall_score

TITLES = {"sst": "SST accuracy", "qqp": "QQP accuracy", "sts": "STS Pearson"}
PRINTED = printed("bees")
READING = (
    "Every cell: the paper's figure / ours, in per cent on dev, mean ± standard deviation over the "
    "seeds where there are several. Minutes per epoch: the paper's on a T4 with all data; ours of "
    "the median run."
)

FAIR = """A fair test here has

- all training examples, and equal numbers of them (those of SimCSE are not counted);
- equal batch sizes; a model with the batches of another may be ahead, but not behind, with a rate
  that was chosen for smaller batches;
- a rate that was chosen without dev for this encoder, these tasks (all of them: by the overall
  score) and the method that is tested, with three or six epochs;
- a pooling that suits the encoder, in SimCSE too, unless both models begin with it;
- three seeds, and two models that are better than always saying the most frequent class and gain at
  most half a point in their last epoch, on average.

It is a test with this encoder and this part of Quora, not with the paper's. SMART has the noise of
its own paper (`--smart-variant projected`) with the default radius, because the normalised noise of
BEES acts like random noise with this encoder. BEES chose its weights of SMART for that noise, so
that two weights are not compared fairly with another one."""


def runs_of(report: Report, row: str) -> list[Content]:
    """Return the stored figures of a row's finished runs, one per seed."""
    cell = report.cell(row)
    kept = report.results.figures_by_seed(cell)
    return [kept[seed] for seed in cell.seeds if seed in kept]


def scores(report: Report, row: str, task: str) -> list[float]:
    """Return a row's main metric of a task in per cent, one value per seed."""
    return [100 * kept["dev"][task][LEADERBOARD[task]] for kept in runs_of(report, row)]


def pair(paper: float | None, ours: Sequence[float]) -> str:
    """Format the paper's figure and ours, such as `51.3 / 47.1 ± 0.3`."""
    return beside("" if paper is None else f"{paper:.1f}", mean_and_spread(ours, 1) if ours else "")


def overall_of(values: Mapping[str, float | None]) -> float | None:
    """Return BEES' Eq. 6 in per cent from figures in per cent; None if one is missing."""
    sst, qqp, sts = (values.get(task) for task in TITLES)
    if sst is None or qqp is None or sts is None:
        return None
    return 100 * overall_score(sst / 100, qqp / 100, sts / 100)


def overall_pair(paper: float | None, found: Mapping[str, Sequence[float]]) -> str:
    """Format the paper's overall score and that of our means."""
    total = overall_of({t: float(np.mean(v)) if v else None for t, v in found.items()})
    return pair(paper, [] if total is None else [total])


def table_one(report: Report, ensemble: Mapping[str, Any] | None) -> Table:
    """Return Table 1: one row per model, then models together and the ensemble.

    If rows were requested, only these and those that are stored are in it.
    """
    rows, requested = [], report.request.rows
    for name, row in {**ROWS, **{n: r for n, r in FURTHER.items() if n.startswith("M")}}.items():
        if requested is not None and name not in requested and not runs_of(report, name):
            continue
        paper = PRINTED["rows"].get(name, {})
        found = {task: scores(report, name, task) for task in row.tasks}
        cells = [pair(paper.get(task), found[task]) if task in found else "" for task in TITLES]
        cells.append(overall_pair(paper.get("overall"), found))
        cells.append(minutes(paper.get("minutes"), runs_of(report, name)))
        rows.append([name, row.title, *cells])
    header = ["model", "", *TITLES.values(), "overall", "minutes per epoch"]
    if requested is not None:
        return header, rows
    for together in PRINTED["together"]:
        names = together["models"]
        found = {ROWS[n].tasks[0]: scores(report, n, ROWS[n].tasks[0]) for n in names}
        total = overall_pair(together["overall"], found)
        rows.append([", ".join(names), "", *[""] * len(TITLES), total, ""])
    dev, paper = ({} if ensemble is None else ensemble["dev"]), PRINTED["ensemble"]
    found = {task: [100 * dev[task][LEADERBOARD[task]]] if task in dev else [] for task in TITLES}
    cells = [pair(paper[task], values) for task, values in found.items()]
    cells.append(overall_pair(paper["overall"], found))
    rows.append(["ensemble", "vote and mean of the models named below", *cells, ""])
    return header, rows


def minutes(paper: float | None, kept: Sequence[Content]) -> str:
    """Format minutes per epoch: the paper's and our median, because machines are interrupted."""
    ours = [one["training_seconds"] / one["epochs"] / 60 for one in kept]
    first = "" if paper is None else f"{paper:.1f}"
    return f"{first} / {np.median(ours):.1f}" if ours else f"{first} / " if first else ""


def further_table(report: Report, prefix: str) -> Table:
    """Return Table 3 or 4: the rows of `FURTHER` whose names begin with `prefix`."""
    rows = []
    for name, row in FURTHER.items():
        if name.startswith(prefix):
            (task,) = row.tasks
            paper = PRINTED["rows"].get(name, {}).get(task)
            figures = pair(paper, scores(report, name, task))
            rows.append([name, row.title, TITLES[task], figures])
    return ["model", "", "metric", "paper / ours"], rows


def ensemble_text(report: Report, ensemble: Mapping[str, Any]) -> str:
    """Describe for each task whether the ensemble is above the best single run."""
    parts = []
    for task, title in TITLES.items():
        name, best = best_run(report, task)
        merged = ensemble["dev"][task][LEADERBOARD[task]]
        word = "above" if merged > best else "not above"
        parts.append(f"{title} {100 * merged:.1f}, {word} {100 * best:.1f} of {name}")
    return f"The ensemble of the first seed, beside the best single run: {'; '.join(parts)}."


def page(report: Report) -> list[str]:
    """Return the parts of the page, in the paper's order."""
    ensemble = merged_members(report)
    done = sum(bool(runs_of(report, name)) for name in EVERY)
    # Test labels are not public, so ours are prediction files.
    ours = "" if ensemble is None else "prediction file"
    printed_test = [f"{PRINTED['test'][task]:.1f}" for task in TITLES]
    on_test = [["paper", *printed_test], ["ours", *(ours for _ in TITLES)]]
    members = "; ".join(f"{TITLES[task]}: {', '.join(names)}" for task, names in ENSEMBLE.items())
    parts = [
        f"{done} of {len(EVERY)} rows have a run. {READING}",
        report.results.measured(report.cells),
        notes_of(STUDY, report.request),
        "## Table 1",
        markdown_table(*table_one(report, ensemble)),
    ]
    if report.request.rows is not None:
        return parts
    return [
        *parts,
        f"Members of the ensemble: {members}.",
        "" if ensemble is None else ensemble_text(report, ensemble),
        "## Table 2: the ensemble on test",
        markdown_table(["", *TITLES.values()], on_test),
        "## Table 3: [CLS] pooling",
        markdown_table(*further_table(report, "T3")),
        "## Table 4: sigmoid",
        markdown_table(*further_table(report, "T4")),
    ]


def draw(report: Report) -> None:
    """Draw Figures 2 and 3 (weights of SMART), 4 (confusion of M14) and 5 (similarities of M17).

    Delete the figures of cells that are not stored.
    """
    results, first = report.results, f"seed{SEEDS[0]}"
    dev = {name: kept["dev"] for name, kept in results.figures_by_run(report.cells).items()}
    for task, rows in CURVES.items():
        file = results.folder / f"smart-weight-{task}.png"
        found = {weight: dev.get(f"{name}-{first}") for weight, name in rows.items()}
        metric = LEADERBOARD[task]
        points = {weight: one[task][metric] for weight, one in found.items() if one is not None}
        draw_curve(points, f"{task} dev {metric}", file, SEEDS[:1])
    for row, name in (("M14", "confusion.png"), ("M17", "similarities.png")):
        if f"{row}-{first}" not in dev:
            (results.folder / name).unlink(missing_ok=True)
    if scored := read_scored(report, "M14"):
        save_figure(confusion(scored, "sst"), results.folder / "confusion.png")
    if (scored := read_scored(report, "M17")) and (figure := similarity_distribution([scored])):
        save_figure(figure, results.folder / "similarities.png")


def read_scored(report: Report, row: str) -> ScoredSystem | None:
    """Return a row's run of the first seed as one system; None if its folder is not here."""
    folder = report.results.finished_folder(report.cell(row), SEEDS[0], report.request.runs)
    if folder is None:
        return None
    (scored,) = read_systems([(row, folder)])
    return scored


STUDY = Study(
    name="bees",
    title="BEES, beside ours",
    notes="the paper's is BERT on 283,010 pairs of Quora. The best epoch was chosen "
    "on the dev set that is reported, by the paper as by us. With --limit N tasks are equally "
    "large, so that sampling by size is uniform, and claims about mixtures are not tested fairly.",
    cells=cells,
    page=page,
    claims=claims,
    claims_note=FAIR,
    wanted=is_wanted,
    draw=draw,
    captions={
        **{
            f"smart-weight-{task}": f"{title} on dev by weight of SMART: normalised noise, the "
            "first seed only (Figures 2 and 3). Means of three seeds are in Table 1."
            for task, title in TITLES.items()
        },
        "confusion": "SST dev: labels and predictions of M14, the first seed (Figure 4).",
        "similarities": "STS dev: labels, and predictions of M17, the first seed (Figure 5).",
    },
    precision="bf16",
    options=("further", "seeds", "epochs", "lr", "batch_size"),
    by_beginning=False,
    audited=True,
    few_seeds=True,
)
