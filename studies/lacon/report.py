"""The page of LaCon: its tables beside ours, whether the claims hold, in the paper's order."""

from __future__ import annotations

from collections.abc import Collection

from reports.tables import markdown_table
from studies.cell_selection import how_far
from studies.claims import READING
from studies.lacon.claims import method_claims, own_claims, part_claims, protocol_claims
from studies.lacon.experiments import EPOCHS, FEW_EPOCHS, MAPPED, METRICS, SEEDS
from studies.lacon.protocol_tables import (
    by_class_table,
    classes_table,
    few_shot_table,
    imbalance_table,
    sweep_table,
)
from studies.lacon.remarks import ahead, peaks, steadier
from studies.lacon.results import Results
from studies.lacon.table import ablation_table, data_table, main_table, ranks_table

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


def report(results: Results, command: str, notes: str, absent: Collection[str] = ()) -> str:
    """results/lacon.md; `absent` are tasks whose data is not there."""
    metrics = ", ".join(f"{task} {metric}" for task, metric in METRICS.items())
    parts = [
        "# LaCon, beside ours",
        f"`{command}`",
        f"{how_far(results.cells.every(), results.folder, absent)} "
        "Every cell: the paper's figure (BERT base) / "
        f"ours, on test, in per cent, mean ± standard deviation (seeds): {metrics}, the others "
        "accuracy.",
        notes,
        OWN_NUMBERS,
        "## Data (Table 1)",
        markdown_table(*data_table(results)),
        "The paper's test sets are GLUE's and CLUE's dev files, ours those of DIR, which may be "
        "parts of them.",
        "## Seven methods (Tables 2 and 7)",
        markdown_table(*main_table(results)),
        ahead(results),
        "## Do the claims hold?",
        READING,
        markdown_table(*method_claims(results)),
        "Not the paper's questions: what is left of a gain where both look at all tokens, and "
        "whether labels that begin at their names help.",
        markdown_table(*own_claims(results)),
        "## Without a part (Tables 3 and 6)",
        markdown_table(*ablation_table(results)),
        markdown_table(*part_claims(results)),
        "The paper calls the projection head useless for CE: no difference, or CE ahead of it, "
        "agrees.",
        "## Few-shot: 20 examples a class (Table 4), of one task more and fewer (Figure 2)",
        markdown_table(*few_shot_table(results)),
        steadier(results),
        "## Imbalance: 32 examples of the rarest class (Figure 3)",
        markdown_table(*imbalance_table(results)),
        "F1 of each class at a ratio of 10 (Table 5):",
        markdown_table(*by_class_table(results)),
        "## Number of classes (Figure 6)",
        markdown_table(*classes_table(results)),
        "## Few examples, imbalance, classes: do the claims hold?",
        "A gain is LaCon's figure less that of CE with the same seed; over ratios and numbers of "
        "classes it is one mean a seed.",
        markdown_table(*protocol_claims(results)),
        "## Temperature, heads, weight of the regulariser (Figure 5)",
        markdown_table(*sweep_table(results)),
        peaks(results),
        "Nothing was chosen by these.",
    ]
    if any(results.ranks(task) for task in MAPPED):
        parts += [
            f"## Effective rank of the test embeddings, seed {SEEDS[0]} (appendix A.3)",
            "Of what the encoder gives, and of what LaCon matches with labels:",
            markdown_table(*ranks_table(results)),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"
