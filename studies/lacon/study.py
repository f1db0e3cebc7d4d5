"""The page and the figures of the LaCon study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from common.files import write_json
from multitask.assembly import assemble
from multitask.loop.evaluation import score_split
from multitask.runs import Run
from multitask.settings.from_flags import changed_by_flags
from pretrain.probe import Embedding
from reports.figures import heading, new_figure, save_figure, styled
from reports.tables import markdown_table, titled_table
from studies.claims import Claim, verdict_table
from studies.figures import EmbeddingSpace, Line, complete_map_run, draw_lines, draw_spaces
from studies.lacon import cells as lacon
from studies.lacon import claims as tested
from studies.lacon import sentences, tables
from studies.study import Report, Study, StudyRequest, notes_of, progress_notice, tuning_part
from tasks.lacon import LaCon

RATE = 2e-5  # the middle rate of section 3.1
DRAWN = ("ce", "scl", "lacon")  # Figure 4
UNTUNED = (
    "Settings that were not chosen on dev: LaCon: temperature 0.1, weight 0.5 of the regulariser; "
    "CE + SCL: weight 0.9 and temperature 0.3, as its source has them most often; CE + CL: weight "
    "0.13 and temperature 0.1, after ConSERT. LaCon has six heads or as "
    "many fewer as fit the width."
)
STOPPED = (
    "A twentieth of the training examples, one of each class at least, is for early stopping; "
    "few-shot runs and those with imbalance have as many as for training, the former "
    f"{lacon.FEW_EPOCHS} epochs, the latter {lacon.EPOCHS}, selected by Matthews' correlation."
)


def pooling_text(pooling: str | None) -> str:
    """Return which tokens the methods look at."""
    if pooling == "mean":
        return "All methods look at all tokens."
    return (
        f"CE, CE + CL, CE + SCL and LaCon-vanilla use {pooling} pooling, the others look at all "
        "tokens: with an encoder that was trained to average, that may be their gain, so that CE "
        "and LaCon-vanilla are also run at the mean of the tokens."
    )


def experiments(request: StudyRequest) -> lacon.Experiments:
    if not request.made:
        rate, tuned = request.lr or RATE, request.tuned
        made = lacon.Experiments(request.base, request.epochs, rate, request.changes, tuned)
        request.made.append(made)
    return request.made[0]


def claims(report: Report) -> list[Claim]:
    """Return what is tested of the paper, in its order."""
    found = tables.Scores(experiments(report.request), report.results)
    return [
        tested.method_claims(found),
        tested.part_claims(found),
        tested.few_shot_claims(found),
        tested.imbalance_claims(found),
        tested.class_claims(found),
        tested.setting_claims(found),
    ]


def page(report: Report) -> list[str]:
    """Return the parts of the page, in the paper's order."""
    found = tables.Scores(experiments(report.request), report.results)
    metrics = ", ".join(f"{task} {metric}" for task, metric in lacon.METRICS.items())
    parts = [
        f"{progress_notice(report)} Every cell: the paper's figure (BERT base) / "
        f"ours, on test, in per cent, mean ± standard deviation (seeds): {metrics}, the others "
        "accuracy.",
        f"{notes_of(STUDY, report.request)} Learning rate {report.request.lr or RATE:g}, where dev "
        "did not choose another.",
        f"{UNTUNED} {pooling_text(found.cells.main('sst2', 'ce').config.pooling)} {STOPPED}",
        *tuning_part(STUDY, report),
        *titled_table(
            "## Data (Table 1)",
            tables.data_table(found),
            "The paper's test sets are GLUE's and CLUE's dev files, ours those of DIR, which may "
            "be parts of them.",
        ),
        *titled_table(
            "## Seven methods (Tables 2 and 7)",
            tables.main_table(found),
            sentences.lead_text(found),
        ),
        "Not the paper's questions: what is left of a gain where both look at all tokens, and "
        "whether labels that begin at their names help.",
        markdown_table(*verdict_table([tested.own_claims(found)])),
        "## Without a part (Tables 3 and 6)",
        markdown_table(*tables.ablation_table(found)),
        "## Few-shot: 20 examples per class (Table 4), of one task more and fewer (Figure 2)",
        markdown_table(*tables.few_shot_table(found)),
        sentences.stability_text(found),
        "## Imbalance: 32 examples of the rarest class (Figure 3)",
        markdown_table(*tables.imbalance_table(found)),
        "F1 of each class at a ratio of 10 (Table 5):",
        markdown_table(*tables.by_class_table(found)),
        *titled_table("## Number of classes (Figure 6)", tables.classes_table(found)),
        *titled_table(
            "## Temperature, heads, weight of the regulariser (Figure 5)",
            tables.sweep_table(found),
            sentences.best_settings_text(found),
            "Nothing was chosen by these.",
        ),
    ]
    if any(found.ranks(task) for task in lacon.MAPPED):
        parts += [
            f"## Effective rank of the test embeddings, seed {lacon.SEEDS[0]} (appendix A.3)",
            "Of what the encoder gives, and of what LaCon matches with labels:",
            markdown_table(*tables.ranks_table(found)),
        ]
    return parts


def draw(report: Report) -> None:
    """Draw Figures 2, 3, 5 and 6."""
    found = tables.Scores(experiments(report.request), report.results)
    cells = found.cells
    lines: dict[str, tuple[str, str, dict[str, Line]]] = {  # y label, x label, lines
        "few-shot": (
            f"{lacon.CURVE} test {tables.metric_name(lacon.CURVE)}",
            "examples per class",
            {
                title: {s: found.of(cells.few_shot(lacon.CURVE, s, m)) for s in lacon.SHOTS}
                for m, title in lacon.FEW_METHODS.items()
            },
        )
    }
    for task in lacon.IMBALANCED:
        lines[f"imbalance-{task}"] = (
            f"{task} test {tables.metric_name(task)}",
            "most frequent class / rarest",
            {
                lacon.METHODS[m]: {r: found.of(cells.imbalanced(task, r, m)) for r in lacon.RATIOS}
                for m in ("ce", "lacon")
            },
        )
    for task, counts in lacon.CLASS_TASKS.items():
        lines[f"classes-{task}"] = (
            f"{task} test {tables.metric_name(task)}",
            "classes",
            {
                lacon.METHODS[m]: {c: found.of(cells.first_classes(task, c, m)) for c in counts}
                for m in lacon.CLASS_METHODS
            },
        )
    for what, (_, points) in lacon.SWEEPS.items():
        lines[f"sweep-{what}"] = (
            "LaCon, test accuracy",
            what,
            {task: {v: tables.swept(found, task, what, v) for v in points} for task in lacon.SWEPT},
        )
    for name, (ylabel, xlabel, several) in lines.items():
        draw_lines(several, report.results.folder / f"{name}.png", xlabel, ylabel)


def draw_maps_of_runs(report: Report) -> None:
    """Train and keep runs; draw Figure 4 and singular values, whose ranks the page shows."""
    cells, folder = experiments(report.request), report.results.folder
    for task in lacon.MAPPED:
        several = {method: cells.main(task, method) for method in DRAWN}
        if not report.ran(list(several.values())):
            continue
        spaces, encoders = {}, {}
        for method, one in several.items():
            config = changed_by_flags(one.config, seed=lacon.SEEDS[0])
            run = complete_map_run(config, report.request.runs, f"{task}-{method}")
            spaces[lacon.METHODS[method]] = space_of(run)
            encoders[lacon.METHODS[method]] = space_of(run, matched=False)
        encoders["LaCon, projected"] = spaces[lacon.METHODS["lacon"]]
        draw_spaces(spaces, folder / f"maps-{task}.png")
        draw_spectra(encoders, folder / f"spectrum-{task}.png")
        ranks = {title: effective_rank(spectrum(space)) for title, space in encoders.items()}
        write_json(tables.ranks_file(folder, task), ranks)


def space_of(run: Path, matched: bool = True) -> EmbeddingSpace:
    """Return a run's test embeddings or, if `matched`, the vectors LaCon matches with labels."""
    config = Run(run).config
    tasks, model, splits = assemble(config)
    model.load(Run(run).weights())
    ((name, task),) = tasks.items()
    split = splits[name]["test"]
    assert split.examples.targets is not None
    labels = None
    scores: Any = partial(F.normalize, dim=-1)
    if matched and isinstance(config.objective, LaCon):
        head = model.heads[name]
        assert isinstance(head.labels, torch.Tensor)
        labels = F.normalize(head.labels.detach(), dim=-1).cpu().numpy()

        def scores(outputs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
            return F.normalize(outputs[0], dim=-1)
    else:
        model.heads[name] = Embedding()
    task = replace(task, kind=replace(task.kind, scores=scores))
    examples = score_split(model, task, split)
    return EmbeddingSpace(examples, split.examples.targets, labels)


def spectrum(space: EmbeddingSpace) -> np.ndarray:
    """Return the singular values of the examples (N, H), divided by the largest (appendix A.3)."""
    values = np.linalg.svd(space.examples.astype(np.float64), compute_uv=False)
    return values / values[0]


def effective_rank(values: np.ndarray) -> float:
    """Return the exponential of the values' entropy (Roy and Vetterli, 2007)."""
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


@styled
def draw_spectra(spaces: Mapping[str, EmbeddingSpace], file: Path) -> None:
    """Plot singular values by rank, one line per run."""
    figure, axis = new_figure(4.4, 3.6)
    for title, space in spaces.items():
        values = spectrum(space)
        axis.plot(np.arange(1, len(values) + 1), values, label=title)
    axis.set(xlabel="rank", ylabel="singular value / largest", xscale="log", yscale="log")
    axis.set_ylim(1e-4, 1.5)
    examples = len(next(iter(spaces.values())).examples)
    heading(axis, "Spectrum of the test embeddings", f"n = {examples:,}, one run each")
    axis.legend()
    save_figure(figure, file)


STUDY = Study(
    name="lacon",
    title="LaCon, beside ours",
    notes="training examples are counted per class; the files' dev is test, or a published test "
    "file with labels. minilm's own training data, as it is published, holds Quora's duplicates, "
    "AllNLI and SQuAD: its figures of QQP, MNLI and QNLI are flattered. Tasks at the level of "
    "chance or of their most frequent class do not test the claims fairly.",
    cells=lambda request: experiments(request).every(),
    page=page,
    claims=claims,
    claims_note="A gain is LaCon's figure less that of CE with the same seed; over ratios and "
    "numbers of classes it is one mean per seed. The paper calls the projection head useless for "
    "CE: no difference, or CE ahead of it, agrees.",
    draw=draw,
    searches=lambda request: experiments(request).searches,
    train_and_draw=draw_maps_of_runs,
    captions={
        "few": "By the number of training examples per class (Figure 2).",
        "imbalance": "{}: by the ratio of the most frequent class to the rarest (Figure 3).",
        "classes": "{}: by the number of classes (Figure 6).",
        "sweep": "LaCon by {} (Figure 5).",
        "maps": "{}: t-SNE of test embeddings; stars are labels (Figure 4).",
        "spectrum": "{}: singular values of the test embeddings (appendix A.3).",
    },
    options=("seeds", "epochs", "lr", "pooling", "batch_size", "tune"),
    limit_per_class=True,
    limit_shares=False,
    data="at most 5,000 training examples per class of two classes, 1,000 of more, all of MRPC, "
    "RTE and CoLA",
)
