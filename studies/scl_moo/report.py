"""The page of SCL-MOO: its tables beside ours, whether the claims hold, in the paper's order."""

from __future__ import annotations

from collections.abc import Collection

from reports.tables import markdown_table
from studies.cell_selection import how_far
from studies.claims import READING
from studies.scl_moo.epo import spaces_table, status_table
from studies.scl_moo.results import Results
from studies.scl_moo.table import (
    chosen_table,
    data_table,
    few_shot_table,
    full_table,
    significance_table,
    sweep_table,
)


def report(results: Results, command: str, notes: str, absent: Collection[str] = ()) -> str:
    """results/scl_moo.md; `absent` are tasks whose data is not there."""
    parts = [
        "# SCL-MOO, beside ours",
        f"`{command}`",
        f"{how_far(results.cells.every(), results.folder, absent)} "
        "Every cell: the paper's figure (RoBERTa base) "
        "/ ours, test accuracy in per cent, mean ± standard deviation (seeds).",
        notes,
        "## Data (Table 1)",
        markdown_table(*data_table(results)),
        "Left out: training examples whose texts are in dev or test of their task.",
        "## Few-shot (Table 2, and three tasks more)",
        markdown_table(*few_shot_table(results)),
        "## Do LS and EPO beat the baselines?",
        markdown_table(*significance_table(results)),
        f"{READING} A few-shot pair is the mean over N; methods share a seed's examples. LS and "
        "EPO have batches of as many examples of each class (Algorithm 1), CE and CE + SCL random "
        "ones: a difference may be the batches'.",
        "## All data (Table 3)",
        markdown_table(*full_table(results)),
        "## What EPO did",
        markdown_table(*status_table(results)),
        "Means over runs. At a vertex one of the two has no say, on the way to the ray of the "
        "preference or where it is out of reach; apart: the difference of preference x pull and "
        "preference x push over the last steps, in shares of the larger one.",
        "## EPO at the representation and at the parameters, 50 examples",
        markdown_table(*spaces_table(results)),
        "## Figure 5: SST-2 dev accuracy with 50 examples",
        markdown_table(*sweep_table(results)),
        "The point that is best on dev, one setting away from the paper's, and its test figures. "
        "The tables above have the paper's settings throughout; five seeds of one task show "
        "nothing for others.",
        markdown_table(*chosen_table(results)),
    ]
    return "\n\n".join(parts) + "\n"
