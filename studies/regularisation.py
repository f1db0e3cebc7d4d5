"""SimCSE and SMART on each task: run.py --mode reproduce --table regularisation --data DIR

One cell per task and variant; further SMART weights on STS and SST for BEES' Figures 2 and 3.
"""

from __future__ import annotations

from pretrain.objectives import SimCSE
from reports.tables import markdown_table, mean_and_spread
from studies.figures import draw_curve
from studies.results import Cell
from studies.runner import long_training
from studies.study import Report, Study, StudyRequest, notes_of
from tasks.metrics import LEADERBOARD

VARIANTS = {"plain": "-", "simcse": "SimCSE", "smart": "SMART", "both": "SimCSE + SMART"}
SEEDS = (11711, 1, 2)
WEIGHT = 1.0  # default weight of SMART, as in BEES' M14 to M16
WEIGHTS = (0.0, 0.3, 1.0, 3.0, 10.0)  # in the figures
FIGURES = ("sts", "sst")
TASKS = ("sst", "qqp", "sts")
LIMIT = 3000


def cells(request: StudyRequest) -> list[Cell]:
    """Return the cell of each task and variant, then those of the figures' further weights."""
    return [
        *(cell(request, task, variant) for variant in VARIANTS for task in TASKS),
        *(
            cell(request, task, "smart", weight)
            for task in FIGURES
            for weight in WEIGHTS
            if weight not in (0, WEIGHT)
        ),
    ]


def cell(request: StudyRequest, task: str, variant: str, weight: float = WEIGHT) -> Cell:
    """Return a cell; with SimCSE it starts from pre-training on its task's training sentences."""
    plain = request.base.changed(
        mode="single",
        tasks=(task,),
        similarity_scale=1.0,  # as in the stored cells
    )
    config, before, seeds = plain, None, SEEDS if weight == WEIGHT else SEEDS[:1]
    if variant in ("smart", "both"):
        config = config.changed(smart_weight={task: weight})
    if variant in ("simcse", "both"):
        pretraining = plain.changed(mode="pretrain", objective="simcse", **SimCSE.defaults)
        name = f"{task}-pretraining"
        before = Cell(name, pretraining, SEEDS, long_training, keeps_folder=True)
    name = f"{task}-{variant}" + ("" if weight == WEIGHT else f"{weight:g}")
    return Cell(name, config, seeds, long_training, before, keeps_folder=True)


def scores(report: Report, name: str) -> dict[int, float]:
    """Return a cell's main metric by seed."""
    one = report.cell(name)
    (task,) = one.config.tasks
    return report.results.values(one, "dev", task, LEADERBOARD[task])


def page(report: Report) -> list[str]:
    """Return the page: mean ± deviation over seeds, one row per variant, one column per task."""
    rows = []
    for variant, title in VARIANTS.items():
        found = [list(scores(report, f"{task}-{variant}").values()) for task in TASKS]
        rows.append([title, *(f"{mean_and_spread(f, 4)} ({len(f)})" if f else "" for f in found)])
    table = markdown_table(["", *(f"{t} {LEADERBOARD[t]} (seeds)" for t in TASKS)], rows)
    return [notes_of(STUDY, report.request), table]


def draw(report: Report) -> None:
    """Draw BEES' Figures 2 and 3: the first seed's dev score over the weight of SMART."""
    for task in FIGURES:
        points = {}
        for weight in WEIGHTS:
            name = "plain" if not weight else "smart" + ("" if weight == WEIGHT else f"{weight:g}")
            if (score := scores(report, f"{task}-{name}").get(SEEDS[0])) is not None:
                points[weight] = score
        file = report.results.folder / f"smart-weight-{task}.png"
        draw_curve(points, f"{task} dev {LEADERBOARD[task]}", file, SEEDS[:1])


STUDY = Study(
    name="regularisation",
    title="SimCSE and SMART, alone and together",
    notes="scores on dev, of the best epoch on dev.",
    cells=cells,
    page=page,
    draw=draw,
    precision="bf16",
    limit=LIMIT,
    options=("seeds",),
    audited=True,
)
