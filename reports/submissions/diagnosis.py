"""Diagnosis of prediction files: their scores, and what is wrong with the models behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from reports.submissions.checks import format_faults
from reports.submissions.fault_kinds import Faults
from reports.submissions.id_faults import (
    BY_IDS,
    Splits,
    copies,
    id_faults,
    largest_overlap,
    matched,
)
from reports.submissions.known_splits import recognise
from reports.submissions.prediction_files import Predictions, read_predictions
from reports.submissions.prediction_names import COURSES, Header
from reports.submissions.value_faults import (
    LEAST,
    better_than_test,
    class_values,
    label_values,
    shifted_scores,
    short,
    too_good,
    unknown_as_wrong,
    value_faults,
)
from tasks import build_task
from tasks.base import Task
from tasks.labelled_files import LabelledFiles
from tasks.splits import existing_files
from tasks.tables import columns_of


@dataclass(frozen=True)
class Finding:
    """A fault of a file, one of `fault_kinds.KINDS`, with the numbers that show it."""

    kind: str
    file: Path
    evidence: str


@dataclass(frozen=True)
class FileDiagnosis:
    """One prediction file: its metrics, of `scored` examples, its faults and remarks."""

    predictions: Predictions
    known: int | None  # ids of the data's split; None without such a file
    scored: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    main: float | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def diagnose(
    headers: Iterable[Header],
    gold: Path,
    subset: bool = False,
    wanted: Sequence[str] | None = None,
) -> list[FileDiagnosis]:
    """Diagnose the prediction files with these headers, beside the data in the folder `gold`.

    Files of other tasks than those `wanted` are left out. Files are scored if their ids are those
    of the data's split or, with `subset`, on the ids that both have. Raises DataError for data that
    cannot be read.
    """
    files = read_predictions(headers, wanted or COURSES)
    known: dict[tuple[str, int], tuple[Task, Splits]] = {}
    found = []
    for one in files:
        width = one.values.shape[1] if one.values.ndim == 2 else 0
        if (one.task, width) not in known:
            task = task_of(one.task, width)
            known[one.task, width] = task, read_splits(task, gold)
        found.append(diagnose_file(one, *known[one.task, width], subset, copies(one, files)))
    return [with_test_score(one, found) for one in found]


def task_of(name: str, width: int) -> Task:
    """Return the task of a file; `width` is the number of values in a row, 0 for a single one."""
    return build_task(name, **({"types": "7"} if (name, width) == ("etpc", 7) else {}))


def read_splits(task: Task, gold: Path) -> Splits:
    """Return the splits for which there are files, of test with its labels if the file has any."""
    found = {}
    for split, file in existing_files(task.source, gold).items():
        source = task.source
        if isinstance(source, LabelledFiles) and not source.labelled(split):
            columns = columns_of(file, source.allows_commas(file), source.quoted)
            source = replace(source, labelled_test=source.label_column in columns)
        found[split] = source.read(gold, split)
    return found


def diagnose_file(
    one: Predictions, task: Task, splits: Splits, subset: bool, copied: str | None
) -> FileDiagnosis:
    """Diagnose one file; `copied` is evidence that it is a copy of the dev file."""
    faults = list(reading_faults(one))
    if one.no_header:
        return FileDiagnosis(one, None, findings=as_findings(one, faults))
    split = one.split or largest_overlap(one, splits)
    examples = splits.get(split) if split else None
    there, places = matched(one, examples)
    by_ids = id_faults(one, len(there), split, splits, subset)
    faults += [("test equals dev", copied)] if copied else by_ids
    scored = there < len(one.ids)  # the ids with values
    if not subset and (not scored.all() or any(kind in BY_IDS for kind, _ in faults)):
        scored[:] = False
    targets = examples.targets if examples is not None and scored.any() else None
    rows = there[scored] if targets is not None else there[:0]
    known = targets[places[scored]] if targets is not None else None
    predicted, more = values_and_faults(one, task, rows, known)
    faults += more
    metrics: Mapping[str, float] = {}
    if predicted is not None and known is not None and examples is not None:
        metrics = measured(task, predicted[rows], known)
        published = bool(recognise(examples.ids))
        if len(rows) >= LEAST:
            faults += too_good(one.task, metrics[task.kind.main_metric], published)
    notes = [f"ids of {named}" for named in recognise(one.all_ids)[:1]]
    if subset and examples is not None:
        notes.append(f"scored on {len(rows):,} of {len(one.all_ids):,} ids in the file")
    if examples is not None and not faults:
        ids = list(one.ids)
        for row, place in zip(there, places, strict=True):
            ids[row] = examples.ids[place]  # as the data has it
        faults += format_faults(one.file, task, split or "", ids)
    return FileDiagnosis(
        one,
        None if examples is None else len(examples),
        len(rows) if metrics else 0,
        metrics,
        metrics.get(task.kind.main_metric),
        as_findings(one, faults),
        tuple(f"{one.file}: {note}" for note in notes),
    )


def measured(task: Task, predicted: np.ndarray, targets: np.ndarray) -> Mapping[str, float]:
    """Return the metrics of predictions, in which a class that the task does not have is wrong."""
    if task.kind.classes is not None:
        predicted = unknown_as_wrong(predicted, targets, task.kind.classes)
    return task.kind.metrics(predicted, targets)


def as_findings(one: Predictions, faults: Iterable[tuple[str, str]]) -> tuple[Finding, ...]:
    return tuple(Finding(kind, one.file, evidence) for kind, evidence in faults)


def reading_faults(one: Predictions) -> Faults:
    """Yield what is wrong with the header and the rows of a file."""
    if one.no_header:
        yield "no header", one.no_header
    if one.broken:
        line, text = one.broken[0]
        where = f"line {line}: " if line else ""
        total = len(one.broken) + len(one.ids)
        yield "unreadable", f"{len(one.broken):,} of {total:,} rows, {where}{text[:60]!r}"
    if one.tensors:
        line, text = one.tensors[0]
        count = f"{len(one.tensors):,} of {len(one.ids):,} values"
        yield "printed tensors", f"{count}, line {line}: {text[:60]!r}"
    if one.repeated:
        yield "repeated ids", f"{one.repeated:,} of {one.repeated + len(one.ids):,} rows"


def values_and_faults(
    one: Predictions, task: Task, rows: np.ndarray, targets: np.ndarray | None
) -> tuple[np.ndarray | None, list[tuple[str, str]]]:
    """Return predictions of all rows in the form of the task's metrics, or None, and faults.

    Beside labels only the `rows` that have one are examined. Classes are those in the file, also if
    it is shifted by one; its other faults are those after the shift back.
    """
    if not len(one.ids):
        return None, []
    kind = task.kind
    faults: list[tuple[str, str]] = []
    converted: np.ndarray | None
    step = 0
    if kind.labels is not None:
        if one.values.shape[1:] != (kind.labels,):
            evidence = f"{one.values.shape[1:]} numbers per row, expected {kind.labels} or 7"
            return None, [("unreadable", evidence)]
        converted, faults = label_values(one.values)
    elif kind.classes is None:
        if one.values.ndim == 2:
            evidence = f"each row has {one.values.shape[1]} numbers, such as {short(one.values[0])}"
            return None, [("unreadable", evidence)]
        converted = one.values
    else:
        converted, faults, step = class_values(one.values, kind.classes)
    if converted is not None:
        known = {kind for kind, _ in faults}
        chosen = converted if targets is None else converted[rows]
        if step and targets is not None and len(chosen):
            scores = shifted_scores(chosen, targets, step, kind.classes or 0)
            faults = [(fault, f"{evidence}; {scores}") for fault, evidence in faults]
        after = f", after {'adding' if step > 0 else 'subtracting'} 1" if step else ""
        more = value_faults(task, chosen + step, targets)
        faults += [(kind, evidence + after) for kind, evidence in more if kind not in known]
    return converted, faults


def with_test_score(one: FileDiagnosis, every: Iterable[FileDiagnosis]) -> FileDiagnosis:
    """Add a finding if the dev score is far above the score of the test file beside it."""
    mine = one.predictions
    for other in every:
        theirs = other.predictions
        beside = (theirs.file.parent, theirs.task) == (mine.file.parent, mine.task)
        dev, test = one.main, other.main
        splits = mine.split, theirs.split
        if beside and splits == ("dev", "test") and dev is not None and test is not None:
            faults = better_than_test(dev, test, (one.scored, other.scored))
            more = tuple(Finding(kind, mine.file, evidence) for kind, evidence in faults)
            if all(finding.kind != "trained on dev" for finding in one.findings):
                return replace(one, findings=one.findings + more)
    return one
