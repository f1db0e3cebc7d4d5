"""The page and the figures of the SCL-MOO study."""

from __future__ import annotations

from multitask.config_tasks import plain_tasks
from multitask.settings.from_flags import changed_by_flags
from reports.tables import markdown_table
from studies.claims import Claim
from studies.figures import complete_map_run, draw_lines, draw_maps
from studies.results import Cell
from studies.scl_moo import cells as scl_moo
from studies.scl_moo import tables
from studies.scl_moo.claims import method_claims, sweep_claims
from studies.study import Report, Study, StudyRequest, notes_of, progress_notice, tuning_part
from tasks import data_folder

RATE = 1e-5  # section 4.1
WHOLE_SWEEPS = ("sweep", *(f"sweep-{name}" for name in scl_moo.SWEEPS.values()))
MAPPED = ("ls", "epo", "scl")  # Figure 4, from left to right: SST-2, 20 examples


def experiments(request: StudyRequest) -> scl_moo.Experiments:
    if not request.made:
        rate = request.lr or RATE
        base = changed_by_flags(request.base, lr=rate, head_lr=rate)
        made = scl_moo.Experiments(base, request.epochs, request.changes, request.tuned)
        request.made.append(made)
    return request.made[0]


def accuracies(report: Report) -> tables.Accuracies:
    return tables.Accuracies(experiments(report.request), report.results)


def claims(report: Report) -> list[Claim]:
    """Return what is tested of the paper: its methods, and the values of its settings."""
    found = accuracies(report)
    return [*method_claims(found), *sweep_claims(found)]


def is_wanted(one: Cell, request: StudyRequest) -> bool:
    """Return whether a cell's name begins with a requested row, or such a row needs the cell.

    Whole sweeps and the comparison of EPO's variants need few-shot cells.
    """
    rows = request.rows
    if rows is None or one.name.startswith(rows):
        return True
    swept = [scl_moo.few_shot_name(*scl_moo.SWEPT, m) for _, m in scl_moo.swept_methods()]
    compared = [
        f"few-shot-{task}-50-epo"
        for task in scl_moo.VARIED
        for variant in scl_moo.VARIANTS
        if any(f"{variant}-{task}-epo".startswith(row) for row in rows)
    ]
    return one.name in compared or (one.name in swept and any(row in WHOLE_SWEEPS for row in rows))


def page(report: Report) -> list[str]:
    """Return the parts of the page, in the paper's order."""
    found = accuracies(report)
    return [
        f"{progress_notice(report)} Every cell: the paper's figure (RoBERTa base) "
        "/ ours, test accuracy in per cent, mean ± standard deviation (seeds).",
        f"{notes_of(STUDY, report.request)} Learning rate {report.request.lr or RATE:g}, where dev "
        "did not choose another.",
        *tuning_part(STUDY, report),
        "## Data (Table 1)",
        markdown_table(*tables.data_table(found)),
        "Left out: training examples whose texts are in dev or test of their task."
        + tables.data_notice(found),
        "## Few-shot (Table 2, and three tasks more)",
        markdown_table(*tables.few_shot_table(found)),
        "## All data (Table 3)",
        markdown_table(*tables.full_table(found)),
        "## What EPO did",
        markdown_table(*tables.status_table(found)),
        "Means over runs. At a vertex one of the two objectives has no weight, on the way to the "
        "ray of the preference or where it is out of reach; apart: the difference of preference x "
        "pull and preference x push over the last steps, in shares of the larger one.",
        "## EPO at the representation, at the parameters, and with combined losses, 50 examples",
        markdown_table(*tables.variants_table(found)),
        *sweep_part(found),
    ]


def sweep_part(found: tables.Accuracies) -> list[str]:
    """Return the parts about Figure 5; none if no setting was swept."""
    if not found.swept():
        return []
    return [
        "## Figure 5: SST-2 dev accuracy with 50 examples",
        markdown_table(*tables.sweep_table(found)),
        "The point that is best on dev, with one setting other than in the tables above, and its "
        "test figures; five seeds of one task show nothing for others.",
        markdown_table(*tables.chosen_table(found)),
    ]


def draw(report: Report) -> None:
    """Draw Figure 1, test accuracy over the number of examples, and each setting of Figure 5."""
    found, folder = accuracies(report), report.results.folder
    lines = {
        title: {float(shots): found.few_shot("sst2", shots, method) for shots in scl_moo.SHOTS}
        for method, title in tables.TITLES.items()
    }
    label = "labelled examples"
    draw_lines(lines, folder / "shots.png", label, "SST-2 test accuracy", xticks=scl_moo.SHOTS)
    for setting, name in scl_moo.SWEEPS.items():
        lines = {
            tables.TITLES[method]: {
                value: found.sweep(setting, value, method) for value in scl_moo.GRID
            }
            for where, method in scl_moo.swept_methods()
            if where == setting
        }
        file = folder / f"sweep-{name}.png"
        draw_lines(lines, file, name, "SST-2 dev accuracy, 50 examples")


def draw_maps_of_runs(report: Report) -> None:
    """Train and keep one run per method; draw Figure 4, embeddings of test."""
    cells = {m: experiments(report.request).few_shot("sst2", scl_moo.SHOTS[0], m) for m in MAPPED}
    if not report.ran(list(cells.values())):
        return
    found = {}
    for method, cell in cells.items():
        config = changed_by_flags(cell.config, seed=scl_moo.SEEDS[0])
        found[scl_moo.METHODS[method]] = complete_map_run(config, report.request.runs, method)
    test = plain_tasks(config)["sst2"].read(data_folder(config.data), "test")
    draw_maps(found, test, report.results.folder / "maps.png")


STUDY = Study(
    name="scl-moo",
    folder="scl_moo",
    title="SCL-MOO, beside ours",
    notes="the paper's is roberta-base, and does not give its numbers of epochs. Nothing was "
    "chosen on test.",
    cells=lambda request: experiments(request).every(),
    page=page,
    claims=claims,
    data="the training examples that a row names, or all",
    claims_note="A few-shot pair is one seed's mean over those N (numbers of examples) for which "
    "dev chose the settings of both methods, or over all N if it chose none; methods share a "
    "seed's examples. Other N have the settings that were chosen with "
    f"{scl_moo.TUNED_SHOTS} examples.",
    wanted=is_wanted,
    draw=draw,
    searches=lambda request: experiments(request).searches,
    train_and_draw=draw_maps_of_runs,
    captions={
        "shots": "SST-2 by the number of training examples (Figure 1). CE and CE + SCL have no "
        "class-balanced batches, the others have.",
        "sweep": "SST-2 with 50 examples, by {} (Figure 5).",
        "maps": "t-SNE of test embeddings, one panel for each method (Figure 4).",
    },
    options=("seeds", "epochs", "lr", "pooling", "batch_size", "tune"),
)
