"""The printed form of a diagnosis: a table of scores, and the findings with cause and cure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.submissions.diagnosis import FileDiagnosis
from reports.submissions.fault_kinds import KINDS
from reports.submissions.prediction_names import inside_of
from reports.tables import text_table
from tasks.metrics import overall


def diagnosis_table(found: Sequence[FileDiagnosis], folder: Path) -> str:
    """Return a table by file and metric, with overall scores of folders with the three tasks."""
    rows = []
    for one in found:
        file = one.predictions.file
        name = inside_of(file, folder)
        of = "" if one.known is None else f" of {one.known:,}"
        count = f"{one.scored:,}{of}" if one.scored else f"{len(one.predictions.all_ids):,} rows"
        figures = [(metric, f"{value:.4f}") for metric, value in one.metrics.items()]
        for metric, value in figures or [("not scored", "")]:
            rows.append([name, one.predictions.task, count, metric, value])
    for place in dict.fromkeys(one.predictions.file.parent for one in found):
        for split in ("dev", "test"):
            here = [
                one
                for one in found
                if (one.predictions.file.parent, one.predictions.split) == (place, split)
            ]
            metrics = {one.predictions.task: one.metrics for one in here if one.metrics}
            if len(here) == len({one.predictions.task for one in here}):
                figures = [(name, f"{value:.4f}") for name, value in overall(metrics).items()]
                rows += [[f"{split} files", "all", "", name, value] for name, value in figures]
    return text_table(["file", "task", "ids", "metric", "score"], rows)


def findings_text(found: Sequence[FileDiagnosis]) -> str:
    """Return each finding with its evidence, usual cause and cure, or that there are none."""
    every = [finding for one in found for finding in one.findings]
    if not every:
        return "nothing found that is wrong"
    parts = [f"{len(every)} finding{'s' * (len(every) > 1)}"]
    for number, one in enumerate(every, 1):
        kind = KINDS[one.kind]
        parts.append(
            f"{number}. {kind.title} ({one.kind}): {one.file}\n   evidence: {one.evidence}\n"
            f"   usual cause: {kind.cause}\n   cure: {kind.cure}"
        )
    return "\n\n".join(parts)
