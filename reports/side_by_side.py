"""Tables of several runs side by side, as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.comparison_tables import sections
from reports.store import read_run
from reports.system_scores import score_systems
from reports.systems import group_runs
from reports.tables import text_table


def compared(folders: Sequence[Path]) -> str:
    """Scores, gains over the first system and tests; runs that differ only in seed are one."""
    scored = score_systems(group_runs([(None, read_run(folder)) for folder in folders]))
    return "\n\n".join(f"{title}\n\n{text_table(*table)}" for title, table in sections(scored))
