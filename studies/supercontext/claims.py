"""Tests of SuperConText's claims."""

from __future__ import annotations

from functools import partial

from studies.claims import Claim, PairReasons, Pairs, between, claim_of, differences, mean_per_seed
from studies.fairness import (
    balance_reason,
    batch_reason,
    end_of_grid_reason,
    learnt_by,
    limit_reason,
    tuning_reason,
)
from studies.supercontext import cells as supercontext
from studies.supercontext.tables import PRINTED, Accuracies, best_hard, encoder_title, swept
from studies.tuning import searches_of

LOWER = ("tau",)  # the paper finds smaller values better
HARD = "SuperLoss* - SuperLoss"
FROZEN = "a frozen encoder is better than a fine-tuned one"


def setting_claims(results: Accuracies, setting: str) -> list[Claim]:
    """Return whether SuperLoss is above its rivals, and its other claims, in one setting."""
    cells = results.cells
    main = {
        loss: [cells.main(setting, task, loss) for task in supercontext.TASKS]
        for loss in supercontext.COMPARED
    }
    rivals, ends = dict[str, Pairs](), dict[str, PairReasons]()
    for loss, title in supercontext.COMPARED.items():
        if loss != "superloss":
            line = f"SuperLoss - {title}"
            rivals[line] = differences(results.of, main["superloss"], main[loss])
            ends[line] = partial(unlike, results, setting, loss)
    heads = {
        h: [cells.head(setting, task, h) for task in supercontext.ABLATED]
        for h in supercontext.HEADS
    }
    above = {
        f"non-linear - {head}": differences(results.of, heads["nonlinear"], heads[head])
        for head in ("none", "linear")
    }
    best = {task: best_hard(results, setting, task) for task in supercontext.ABLATED}
    hard = [(one, cells.main(setting, task, "superloss")) for task, one in best.items() if one]
    starred = differences(results.of, [one for one, _ in hard], [every for _, every in hard])
    frozen = {
        "SuperLoss": {
            (next(iter(one.config.tasks)), seed): difference
            for one in main["superloss"]
            for seed, difference in between(results.of(one), results.of(one, "tuned")).items()
        }
    }
    every = [one for several in main.values() for one in several]
    learnt = learnt_by(results.stored, every, results.of, ("linear", "test"))
    reasons, encoder = unfair(results, setting), encoder_title(results, setting)
    own = searches_of(cells.searches, setting, "superloss")
    tuned = any(search.cell.name in cells.tuned for search in own)
    of_frozen = [*reasons, *(["settings were chosen for frozen encoders"] if tuned else [])]
    return [
        claim_of(f"{encoder}: {text}", source, lines, why, learnt, further, PRINTED[table])
        for text, source, table, lines, why, further in (
            ("SuperLoss is better than other losses", "Table 4", "losses", rivals, reasons, ends),
            ("a non-linear projection head is better", "Table 2", "heads", above, reasons, {}),
            ("hard negatives help", "Table 5", "hard", {HARD: starred}, reasons, {}),
            (FROZEN, "Table 3", "judged", frozen, of_frozen, {}),
        )
    ]


def unlike(results: Accuracies, setting: str, rival: str, pairs: Pairs) -> list[str]:
    """Return the conditions of a fair test that SuperLoss and a rival do not meet together."""
    cells = results.cells
    ours, theirs = (
        cells.main(setting, supercontext.TASKS[0], loss).config for loss in ("superloss", rival)
    )
    own, others = (searches_of(cells.searches, setting, loss) for loss in ("superloss", rival))
    at_end = end_of_grid_reason(results.stored, own, others, cells.tuned, pairs)
    unlike_batches = balance_reason(ours, theirs, "SuperLoss has") + batch_reason([ours, theirs])
    return [*unlike_batches, *at_end]


def unfair(results: Accuracies, setting: str) -> list[str]:
    """Return the conditions of a fair test that the settings do not meet."""
    cells = results.cells
    searched = [one for one in cells.searches if one.cell.name.startswith(f"{setting}-")]
    untuned = tuning_reason(results.stored, searched, cells.tuned, supercontext.NOT_TUNED)
    reasons = [*limit_reason(cells.base, "set"), *untuned]
    if supercontext.SETTINGS[setting].words is not None and cells.vectors is None:
        reasons.append("word vectors start at random, without GloVe's")
    epochs, numbers = cells.epochs, supercontext.SETTINGS[setting].epochs
    if supercontext.SETTINGS[setting].words is None and (epochs or numbers) <= numbers:
        reasons.append(f"{numbers} epochs at most; whether more change the result is not known")
    elif epochs is not None and epochs < numbers:
        reasons.append(f"fewer epochs than the paper's {numbers}")
    return reasons


def sweep_claims(results: Accuracies) -> list[Claim]:
    """Return whether the end of each sweep that the paper finds best is better (section V)."""
    ends: dict[str, Pairs] = {}
    for what, points in supercontext.SWEEPS.items():
        better, other = (points[0], points[-1]) if what in LOWER else (points[-1], points[0])
        two = (swept(results, what, value, "superloss") for value in (better, other))
        ends[f"{what}: {better:g} - {other:g}"] = between(*two)
    shapes = [(what, value) for what in ("layers", "units") for value in supercontext.SWEEPS[what]]
    mean = mean_per_seed(
        between(swept(results, *shape, "superloss"), swept(results, *shape, "ce"))
        for shape in shapes
    )
    reasons = unfair(results, "small")
    beside_ce = [*reasons, *unlike(results, "small", "ce", {})]
    over = {"SuperLoss - Cross-entropy, mean over layers and units": mean}
    return [
        claim_of("one end of a sweep is better", "Figures 4 and 5", ends, reasons),
        claim_of("SuperLoss is better for every shape", "Figure 4", over, beside_ce),
    ]
