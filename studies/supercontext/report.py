"""The page of SuperConText: its tables beside ours, in order, and whether the claims hold."""

from __future__ import annotations

from collections.abc import Collection

from reports.tables import markdown_table
from studies.cell_selection import how_far
from studies.claims import READING
from studies.supercontext.experiments import SETTINGS, TEMPERATURE
from studies.supercontext.results import Results
from studies.supercontext.sweeps import sweep_claims, sweep_table
from studies.supercontext.table import printed_hard_table, setting_parts

SAME_FOR_ALL = (
    f"All contrastive losses: temperature {TEMPERATURE:g} (SuperLoss, SupCon), margin 0.5 between "
    "Euclidean distances of unit vectors (triplets), inner products of vectors as they are "
    "(N-pairs), the non-linear projection of 512, batches of as many examples of each class; none "
    "was tuned. BiLSTMs run in fp32. Adam with a linear warm-up over a tenth of the steps, linear "
    "decay and clipping at 1; units are of each direction, where the paper's embedding has 512 in "
    "all. Fine-tuning begins with a fresh head for every loss. Batches of cross-entropy have the "
    "size that the paper gives it, or ours below; its sweep is among the figures. Figures 5a and "
    "5b: batches stay at 40 of each class, of which an anchor sees so many positives and "
    "negatives."
)


def report(results: Results, command: str, notes: str, absent: Collection[str] = ()) -> str:
    """results/supercontext.md; `absent` are tasks whose data is not there."""
    parts = [
        "# SuperConText, beside ours",
        f"`{command}`",
        f"{how_far(results.cells.every(), results.folder, absent)} "
        "Every cell: the paper's figure (BiLSTM of "
        "three layers of 512 over GloVe, 60 epochs; MSAC and ASAC one of 128, 15 epochs) / ours, "
        "test accuracy in per cent, mean ± standard deviation (seeds).",
        notes,
        SAME_FOR_ALL,
        READING,
    ]
    for setting in SETTINGS:
        parts += setting_parts(results, setting)
    parts += [
        "## Table 5 as printed",
        markdown_table(*printed_hard_table()),
        "## Figures 4 and 5: layers, units, batch size, temperature, positives and negatives",
        markdown_table(*sweep_table(results)),
        "Does section V hold?",
        markdown_table(*sweep_claims(results)),
    ]
    return "\n\n".join(parts) + "\n"
