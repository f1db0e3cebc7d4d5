"""The page and the figures of the LaCon study."""

from __future__ import annotations

from reports.cells import write_cell
from reports.tables import markdown_table
from studies.claims import READING
from studies.figures import Line, draw_lines, draw_spaces, drawn_run
from studies.lacon.cells import (
    CLASS_METHODS,
    CLASS_TASKS,
    CURVE,
    EPOCHS,
    FEW_EPOCHS,
    FEW_METHODS,
    IMBALANCED,
    MAPPED,
    METHODS,
    METRICS,
    RATIOS,
    SEEDS,
    SHOTS,
    SWEEPS,
    SWEPT,
    Experiments,
)
from studies.lacon.claims import (
    ahead,
    method_claims,
    own_claims,
    part_claims,
    peaks,
    protocol_claims,
    steadier,
)
from studies.lacon.embeddings import draw_spectra, effective_rank, space_of, spectrum
from studies.lacon.tables import (
    Scores,
    ablation_table,
    by_class_table,
    classes_table,
    data_table,
    few_shot_table,
    imbalance_table,
    main_table,
    ranks_file,
    ranks_table,
    sweep_table,
    swept,
)
from studies.study import Report, Study, StudyRequest, how_far, notes_of

RATE = 2e-5  # the middle rate of section 3.1
DRAWN = ("ce", "scl", "lacon")  # Figure 4
OWN_NUMBERS = (
    "LaCon: temperature 0.1, six heads or as many fewer as fit the width, weight 0.5 of the "
    "regulariser; CE + SCL: weight 0.9 and "
    "temperature 0.3, as its source has them most often; CE + CL: weight 0.13 and temperature 0.1, "
    "after ConSERT; one learning rate for all. CE, CE + CL, CE + SCL and LaCon-vanilla look at "
    "[CLS], the others at all tokens: with an encoder that was trained to average, that may be "
    "their gain, so that CE and LaCon-vanilla are also run at the mean of the tokens. A twentieth "
    "of the training examples, one of each class at least, is for early stopping; few-shot runs "
    "and those with imbalance have as many as for training, the former "
    f"{FEW_EPOCHS} epochs, the latter {EPOCHS}, selected by Matthews' correlation."
)


def experiments(request: StudyRequest) -> Experiments:
    return Experiments(request.base, request.epochs, request.lr or RATE)


def page(report: Report) -> list[str]:
    """Return the parts of the page, in the paper's order."""
    found = Scores(experiments(report.request), report.results)
    metrics = ", ".join(f"{task} {metric}" for task, metric in METRICS.items())
    parts = [
        f"{how_far(report)} Every cell: the paper's figure (BERT base) / "
        f"ours, on test, in per cent, mean ± standard deviation (seeds): {metrics}, the others "
        "accuracy.",
        f"{notes_of(STUDY, report.request)} Learning rate {report.request.lr or RATE:g}.",
        OWN_NUMBERS,
        "## Data (Table 1)",
        markdown_table(*data_table(found)),
        "The paper's test sets are GLUE's and CLUE's dev files, ours those of DIR, which may be "
        "parts of them.",
        "## Seven methods (Tables 2 and 7)",
        markdown_table(*main_table(found)),
        ahead(found),
        "## Do the claims hold?",
        READING,
        markdown_table(*method_claims(found)),
        "Not the paper's questions: what is left of a gain where both look at all tokens, and "
        "whether labels that begin at their names help.",
        markdown_table(*own_claims(found)),
        "## Without a part (Tables 3 and 6)",
        markdown_table(*ablation_table(found)),
        markdown_table(*part_claims(found)),
        "The paper calls the projection head useless for CE: no difference, or CE ahead of it, "
        "agrees.",
        "## Few-shot: 20 examples a class (Table 4), of one task more and fewer (Figure 2)",
        markdown_table(*few_shot_table(found)),
        steadier(found),
        "## Imbalance: 32 examples of the rarest class (Figure 3)",
        markdown_table(*imbalance_table(found)),
        "F1 of each class at a ratio of 10 (Table 5):",
        markdown_table(*by_class_table(found)),
        "## Number of classes (Figure 6)",
        markdown_table(*classes_table(found)),
        "## Few examples, imbalance, classes: do the claims hold?",
        "A gain is LaCon's figure less that of CE with the same seed; over ratios and numbers of "
        "classes it is one mean a seed.",
        markdown_table(*protocol_claims(found)),
        "## Temperature, heads, weight of the regulariser (Figure 5)",
        markdown_table(*sweep_table(found)),
        peaks(found),
        "Nothing was chosen by these.",
    ]
    if any(found.ranks(task) for task in MAPPED):
        parts += [
            f"## Effective rank of the test embeddings, seed {SEEDS[0]} (appendix A.3)",
            "Of what the encoder gives, and of what LaCon matches with labels:",
            markdown_table(*ranks_table(found)),
        ]
    return parts


def draw(report: Report) -> None:
    """Draw Figures 2, 3, 5 and 6."""
    found = Scores(experiments(report.request), report.results)
    cells = found.cells
    lines: dict[str, tuple[str, dict[str, Line]]] = {
        "few-shot": (
            "examples a class",
            {
                title: {s: found.of(cells.few_shot(CURVE, s, m)) for s in SHOTS}
                for m, title in FEW_METHODS.items()
            },
        )
    }
    for task in IMBALANCED:
        lines[f"imbalance-{task}"] = (
            "most frequent class / rarest",
            {
                METHODS[m]: {r: found.of(cells.imbalanced(task, r, m)) for r in RATIOS}
                for m in ("ce", "lacon")
            },
        )
    for task, counts in CLASS_TASKS.items():
        lines[f"classes-{task}"] = (
            "classes",
            {
                METHODS[m]: {c: found.of(cells.first_classes(task, c, m)) for c in counts}
                for m in CLASS_METHODS
            },
        )
    for what, (_, points) in SWEEPS.items():
        lines[f"sweep-{what}"] = (
            what,
            {task: {v: swept(found, task, what, v) for v in points} for task in SWEPT},
        )
    for name, (label, several) in lines.items():
        draw_lines(several, report.results.folder / f"{name}.png", label, "test")


def draw_maps_of_runs(report: Report) -> bool:
    """Train and keep runs; draw Figure 4 and singular values, whose ranks the page shows."""
    cells, folder = experiments(report.request), report.results.folder
    for task in MAPPED:
        several = {method: cells.main(task, method) for method in DRAWN}
        if not report.ran(list(several.values())):
            continue
        spaces, encoders = {}, {}
        for method, one in several.items():
            config = one.config.changed(seed=SEEDS[0])
            run = drawn_run(config, report.request.runs, f"{task}-{method}")
            spaces[METHODS[method]] = space_of(run)
            encoders[METHODS[method]] = space_of(run, matched=False)
        encoders["LaCon, projected"] = spaces[METHODS["lacon"]]
        draw_spaces(spaces, folder / f"maps-{task}.png")
        draw_spectra(encoders, folder / f"spectrum-{task}.png")
        ranks = {title: effective_rank(spectrum(space)) for title, space in encoders.items()}
        write_cell(ranks_file(folder, task), ranks)
    return True


STUDY = Study(
    name="lacon",
    title="LaCon, beside ours",
    notes="training examples are counted a class; the files' dev is test, or a published test "
    "file with labels. minilm's own training data, as it is published, holds Quora's duplicates, "
    "AllNLI and SQuAD: its figures of QQP, MNLI and QNLI are flattered. Tasks at the level of "
    "chance or of their most frequent class do not test the claims fairly.",
    cells=lambda request: experiments(request).every(),
    page=page,
    draw=draw,
    train_and_draw=draw_maps_of_runs,
    options=("seeds",),
    limit_per_class=True,
)
