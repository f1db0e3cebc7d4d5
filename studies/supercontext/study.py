"""The page and the figures of the SuperConText study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from common.errors import UserError
from common.files import file_lock
from multitask.config_tasks import plain_tasks
from multitask.settings.from_flags import changed_by_flags
from reports.tables import markdown_table, titled_table
from studies.claims import Claim
from studies.figures import draw_lines, draw_maps, map_folder
from studies.results import Cell
from studies.study import Report, Study, StudyRequest, notes_of, progress_notice, tuning_part
from studies.supercontext import cells as supercontext
from studies.supercontext import tables
from studies.supercontext.claims import setting_claims, sweep_claims
from studies.supercontext.evaluation import Vectors, pretrain
from tasks import data_folder

MAPPED = ("superloss", "ce")  # Figure 2, on SST-2
SAME_FOR_ALL = (
    f"All contrastive losses: temperature {supercontext.TEMPERATURE:g} (SuperLoss, SupCon), "
    "margin 0.5 between Euclidean distances of unit vectors (triplets), inner products of vectors"
    " as they are (N-pairs), the non-linear projection of 512, batches of as many examples of "
    "each class{tuned}. BiLSTMs run in fp32. Adam with a linear warm-up over a tenth of "
    "the steps, linear decay and clipping at 1; units are of each direction, where the paper's "
    "embedding has 512 in all. Fine-tuning begins with a fresh head for every loss. Batches of "
    "cross-entropy have the size that the paper gives it, or ours below; its sweep is among the "
    "figures. Figures 5a and 5b: batches stay at 40 of each class, of which an anchor sees so "
    "many positives and negatives."
)
TUNED = "; settings of the losses in the table of chosen settings are tuned on dev"


def experiments(request: StudyRequest) -> supercontext.Experiments:
    if not request.made:
        vectors = Vectors.of(Path(request.vectors)) if request.vectors else None
        base, tuned = changed_by_flags(request.base, **request.changes), request.tuned
        made = supercontext.Experiments(base, request.epochs, request.lr, vectors, tuned)
        request.made.append(made)
    return request.made[0]


def check(request: StudyRequest) -> None:
    """Raise UserError for `lr` or `vectors` that no requested or stored row uses."""
    files = request.results.glob("*.json")
    kept = [file.stem for file in files if not file.stem.startswith("ids-")]
    rows = (*(request.rows or supercontext.FIRST), *kept)
    given = [row for row in rows if row.startswith("given") or "given".startswith(row)]
    if request.lr is not None and not given:
        raise UserError("--lr: expected rows of the setting given, found only rows of BiLSTMs")
    if request.vectors is not None and all(row.startswith("given") for row in rows):
        raise UserError("--vectors: expected rows of BiLSTMs, found only rows of the setting given")


def claims(report: Report) -> list[Claim]:
    """Return what is tested of the paper, of each setting and of the sweeps."""
    found = tables.Accuracies(experiments(report.request), report.results)
    tested = [one for setting in supercontext.SETTINGS for one in setting_claims(found, setting)]
    return [*tested, *sweep_claims(found)]


def is_wanted(one: Cell, request: StudyRequest) -> bool:
    """Return whether a cell is requested: by default all but the setting `large`.

    Whole sweeps include main cells, which are their points at default values.
    """
    if request.rows is None:
        return one.name.startswith((*supercontext.FIRST, "sweep"))
    swept_cells = [f"small-{supercontext.SWEPT}-{loss}" for loss in MAPPED]
    whole = ("sweep", *(f"sweep-{what}" for what in supercontext.SWEEPS))
    return one.name.startswith(request.rows) or (
        one.name in swept_cells and any(row in whole for row in request.rows)
    )


def page(report: Report) -> list[str]:
    """Return the parts of the page, in the paper's order for each kind of encoder."""
    found = tables.Accuracies(experiments(report.request), report.results)
    parts = [
        f"{progress_notice(report)} Every cell: the paper's figure (BiLSTM of "
        "three layers of 512 over GloVe, 60 epochs; MSAC and ASAC one of 128, 15 epochs) / ours, "
        "test accuracy in per cent, mean ± standard deviation (seeds).",
        notes_of(STUDY, report.request),
        SAME_FOR_ALL.format(tuned=TUNED if report.request.tuned else "; none was tuned"),
    ]
    parts += tuning_part(STUDY, report)
    for setting in supercontext.SETTINGS:
        parts += tables.setting_parts(found, setting)
    return [
        *parts,
        "## Table 5 as printed",
        markdown_table(*tables.printed_hard_table()),
        *titled_table(
            "## Figures 4 and 5: layers, units, batch size, temperature, positives and negatives",
            tables.sweep_table(found),
        ),
    ]


def draw(report: Report) -> None:
    """Draw Figures 4, 5a and 5b, one per setting, and 5c: the threshold of hard negatives."""
    found = tables.Accuracies(experiments(report.request), report.results)
    lines: dict[str, dict[str, dict[float, Mapping[int, float]]]] = {}
    for what, value, loss in supercontext.sweep_points():
        line = lines.setdefault(what, {}).setdefault(supercontext.LOSSES[loss], {})
        line[value] = tables.swept(found, what, value, loss)
    lines["threshold"] = {
        "SuperLoss*": {
            threshold: found.of(
                found.cells.hard("small", supercontext.SWEPT, "threshold", threshold), split="dev"
            )
            for threshold in supercontext.HARD["threshold"]
        }
    }
    for what, several in lines.items():
        draw_lines(
            several,
            report.results.folder / f"sweep-{what}.png",
            what,
            f"{supercontext.SWEPT} dev accuracy",
        )


def draw_maps_of_runs(report: Report) -> None:
    """Train and keep SuperLoss and cross-entropy runs; draw Figure 2, SST-2's test sentences."""
    cells = experiments(report.request)
    for setting in supercontext.SETTINGS:
        several = {loss: cells.main(setting, "sst2", loss) for loss in MAPPED}
        if not report.ran(list(several.values())):
            continue
        found = {}
        for loss, one in several.items():
            config = changed_by_flags(one.config, seed=supercontext.SEEDS[0])
            folder = map_folder(report.request.runs, one.name, config)
            with file_lock(folder):
                pretrain(config, folder, supercontext.SETTINGS[setting].words, cells.vectors)
            found[supercontext.LOSSES[loss]] = folder / "pretrained"
        (task,) = plain_tasks(one.config).values()
        test = task.read(data_folder(one.config.data), "test")
        draw_maps(found, test, report.results.folder / f"maps-{setting}.png")


STUDY = Study(
    name="supercontext",
    title="SuperConText, beside ours",
    notes="a tenth of train, --dev-limit of it at most, is dev; test is the files' dev, "
    "of reviews the published test file or a fixed share. Texts of dev and test are left out of "
    "train. Claims are not tested fairly with few texts, with BiLSTMs without GloVe's vectors, "
    "or with settings that are not tuned for each loss.",
    cells=lambda request: experiments(request).every(),
    page=page,
    claims=claims,
    wanted=is_wanted,
    check=check,
    draw=draw,
    searches=lambda request: experiments(request).searches,
    train_and_draw=draw_maps_of_runs,
    captions={
        "sweep": "Dev accuracy by {} (Figures 4 and 5).",
        "maps": "{}: t-SNE of test embeddings (Figure 2).",
    },
    options=("seeds", "epochs", "lr", "dev_limit", "vectors", "pooling", "tune"),
)
