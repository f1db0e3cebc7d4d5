"""Runs the cells of SuperConText and writes its tables and figures beside ours."""

from __future__ import annotations

from pathlib import Path

from common.atomic_files import alone, write_whole
from common.errors import UserError
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from studies.cell_selection import absent_tasks, all_chosen, run_chosen
from studies.maps import draw_maps, map_folder
from studies.seeds import SeedCell, tell_failed
from studies.study_request import StudyRequest
from studies.supercontext.experiments import (
    FIRST,
    LOSSES,
    SEEDS,
    SETTINGS,
    SWEEPS,
    SWEPT,
    Experiments,
)
from studies.supercontext.figures import draw_sweeps
from studies.supercontext.judged import Vectors, pretrain
from studies.supercontext.report import report
from studies.supercontext.results import Results
from tasks import data_folder

SHOWN = ("superloss", "ce")  # Figure 2
TASK = "sst2"


def names() -> list[str]:
    """Of all cells; the beginning of one asks for all that begin so."""
    return [one.name for one in Experiments(RunConfig(mode="single", tasks=())).every()]


def reproduce(asked: StudyRequest, command: str, notes: str) -> str:
    """Run what is not there yet; writes and returns the report of all finished cells."""
    check(asked)
    vectors = Vectors.of(Path(asked.vectors)) if asked.vectors else None
    cells = Experiments(asked.base, asked.epochs, asked.lr, vectors)
    chosen, failed = run_chosen(cells.every(), lambda one: wanted(one, asked.rows), asked)
    results = Results(cells, asked.results)
    draw_sweeps(results)
    text = report(results, command, notes, absent_tasks(cells.every()))
    write_whole(asked.report, text)
    for setting in SETTINGS:
        if all_chosen(chosen, [cells.main(setting, TASK, loss) for loss in SHOWN]):
            draw_pretrained(cells, setting, asked.results, asked.runs)
    tell_failed(failed)
    return text


def check(asked: StudyRequest) -> None:
    """UserError for numbers that none of the rows has, neither of those asked for nor kept ones."""
    kept = [file.stem for file in asked.results.glob("*.json") if not file.stem.startswith("ids-")]
    rows = (*(asked.rows or FIRST), *kept)
    given = [row for row in rows if row.startswith("given") or "given".startswith(row)]
    if asked.lr is not None and not given:
        raise UserError("--lr: expected rows of the encoder given, found BiLSTMs' alone")
    if asked.vectors is not None and all(row.startswith("given") for row in rows):
        raise UserError("--vectors: expected rows of BiLSTMs, found those of the encoder given")


def wanted(one: SeedCell, rows: tuple[str, ...] | None) -> bool:
    """Whether its name begins as one asked for; the large setting has to be asked for.

    A point of each whole sweep is a main cell.
    """
    if rows is None:
        return one.name.startswith((*FIRST, "sweep"))
    swept = [f"small-{SWEPT}-{loss}" for loss in SHOWN]
    whole = ("sweep", *(f"sweep-{what}" for what in SWEEPS))
    return any(one.name.startswith(row) for row in rows) or (
        one.name in swept and any(row in whole for row in rows)
    )


def draw_pretrained(cells: Experiments, setting: str, results: Path, runs: Path) -> None:
    """Figure 2: SST-2's test sentences after SuperLoss and after cross-entropy; the runs stay."""
    found = {}
    for loss in SHOWN:
        one = cells.main(setting, TASK, loss)
        config = one.config.changed(seed=SEEDS[0])
        folder = map_folder(runs, one.name, config)
        with alone(folder):
            pretrain(config, folder, cells.words(setting), cells.vectors)
        found[LOSSES[loss]] = folder / "pretrained"
    (task,) = plain_tasks(one.config).values()
    test = task.read(data_folder(one.config.data), "test")
    draw_maps(found, test, results / f"maps-{setting}.png")
