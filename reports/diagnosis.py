"""Diagnosis of prediction files: their scores, and what is wrong with the models behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from multitask.run_folder import run_of_predictions
from reports.known_splits import recognise, short_id
from reports.prediction_files import Predictions, find_predictions
from reports.prediction_names import COURSES
from reports.submissions import format_faults
from reports.value_faults import (
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
from tasks.readers import Examples
from tasks.tables import columns_of
from tasks.text_files import file_exists


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


Splits = Mapping[str, Examples]


def diagnose(
    folder: Path, gold: Path, subset: bool = False, wanted: Sequence[str] | None = None
) -> list[FileDiagnosis]:
    """Diagnose every prediction file in a folder, beside the data in the folder `gold`.

    Files are scored if their ids are those of the data's split or, with `subset`, on the ids that
    both have. Raises DataError for data that cannot be read.
    """
    files = [one for one in find_predictions(folder) if one.task in (wanted or COURSES)]
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
    for split in task.source.splits:
        source, file = task.source, Path(task.source.where(gold, split))
        if file_exists(file):
            if isinstance(source, LabelledFiles) and not source.labelled(split):
                has_labels = source.label_column in columns_of(
                    file, source.allows_commas(file), source.quoted
                )
                source = replace(source, labelled_test=has_labels)
            found[split] = source.read(gold, split)
    return found


def copies(one: Predictions, files: Iterable[Predictions]) -> str | None:
    """Return evidence that a test file has the ids of the dev file beside it, if it has."""
    if one.split != "test":
        return None
    own = set(one.all_ids)
    for other in files:
        if (other.split, other.task) == ("dev", one.task) and other.file.parent == one.file.parent:
            common = len(own & set(other.all_ids))
            if common and 2 * common >= len(own):
                same = "the same bytes" if same_content(one, other) else f"{common:,} ids"
                return f"{same} of {len(own):,} rows are in {other.file.name}"
    return None


def same_content(one: Predictions, other: Predictions) -> bool:
    return one.file.read_bytes() == other.file.read_bytes()


def diagnose_file(
    one: Predictions, task: Task, splits: Splits, subset: bool, copied: str | None
) -> FileDiagnosis:
    """Diagnose one file; `copied` is evidence that it is a copy of the dev file."""
    faults = list(reading_faults(one))
    if one.no_header:
        return FileDiagnosis(one, None, findings=as_findings(one, faults))
    split = one.split or largest_overlap(one, splits)
    examples = splits.get(split) if split else None
    notes = [f"ids of {named}" for named in recognise(one.all_ids)[:1]]
    there, all_places = matched(one, examples)
    if copied:
        faults.append(("test equals dev", copied))
    elif examples is not None:
        faults += id_faults(one, len(there), examples, split or "", splits, subset)
    elif one.split is None and splits and one.all_ids:
        faults.append(("ids of other data", f"no id is in {', '.join(splits)}{origin_of(one)}"))
    with_value = there < len(one.ids)
    rows, places = there[with_value], all_places[with_value]
    targets = examples.targets if examples is not None else None
    complete = not any(kind in BY_IDS for kind, _ in faults) and len(rows) == len(there)
    if targets is None or not (subset or complete):
        rows, places = rows[:0], places[:0]
    matching = targets[places] if targets is not None and len(rows) else None
    metrics: Mapping[str, float] = {}
    predicted, more = values_and_faults(one, task, rows, matching)
    faults += more
    if predicted is not None and matching is not None:
        scored, classes = predicted[rows], task.kind.classes
        if classes is not None:
            scored = unknown_as_wrong(scored, matching, classes)
        metrics = task.kind.metrics(scored, matching)
        assert examples is not None
        published = bool(recognise(examples.ids))
        if len(rows) >= LEAST:
            faults += too_good(one.task, metrics[task.kind.main_metric], published)
    if subset and examples is not None:
        notes.append(f"scored on {len(rows):,} of {len(one.all_ids):,} ids in the file")
    if examples is not None and not faults:
        ids = list(one.ids)
        for row, place in zip(there, all_places, strict=True):
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


def as_findings(one: Predictions, faults: Iterable[tuple[str, str]]) -> tuple[Finding, ...]:
    return tuple(Finding(kind, one.file, evidence) for kind, evidence in faults)


BY_IDS = ("ids of another split", "ids of other data", "missing ids", "test equals dev")
Faults = Iterator[tuple[str, str]]


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


def keys_of(ids: Sequence[str]) -> list[str]:
    """Return the ids without row numbers in front, if these are not needed to tell them apart."""
    brief = [short_id(one) for one in ids]
    return brief if len(set(brief)) == len(brief) else list(ids)


def matched(one: Predictions, examples: Examples | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in `all_ids` of the ids that are in the data, and those in the data."""
    place = {} if examples is None else {k: n for n, k in enumerate(keys_of(examples.ids))}
    pairs = [(row, place[key]) for row, key in enumerate(keys_of(one.all_ids)) if key in place]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def largest_overlap(one: Predictions, splits: Splits) -> str | None:
    """Return the split of the data with the most ids of a file, if any."""
    counts = {name: len(matched(one, examples)[0]) for name, examples in splits.items()}
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best is not None and counts[best] else None


def id_faults(
    one: Predictions, there: int, examples: Examples, split: str, splits: Splits, subset: bool
) -> Faults:
    """Yield what is wrong with the ids of a file, of which the data has as many as are `there`.

    A row of the data may have a blank label.
    """
    others, missing = len(one.all_ids) - there, len(examples) - there
    if (subset and there) or (not missing and others <= examples.blank_rows):
        return
    evidence = (
        f"{there:,} of its {len(one.all_ids):,} ids are among the {len(examples):,} of {split}"
    )
    elsewhere = {name: len(matched(one, splits[name])[0]) for name in splits if name != split}
    counted = "".join(f"; {count:,} are in {name}" for name, count in elsewhere.items() if count)
    if others <= examples.blank_rows:
        yield "missing ids", f"{evidence}; {missing:,} are missing"
    elif 2 * sum(elsewhere.values()) >= others:
        yield "ids of another split", evidence + counted
    else:
        yield "ids of other data", evidence + counted + origin_of(one)


def origin_of(one: Predictions) -> str:
    """Return what is known of the data that a file is of: the course's split, that of its run."""
    named = [f"they are ids of {found}" for found in recognise(one.all_ids)[:1]]
    stored = run_of_predictions(one.file).stored() or {}
    named += [f"its run read --data {stored['data']}"] if "data" in stored else []
    return "".join(f"; {text}" for text in named)


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
        if beside and (mine.split, theirs.split) == ("dev", "test") and one.main and other.main:
            faults = better_than_test(one.main, other.main, (one.scored, other.scored))
            more = tuple(Finding(kind, mine.file, evidence) for kind, evidence in faults)
            if all(finding.kind != "trained on dev" for finding in one.findings):
                return replace(one, findings=one.findings + more)
    return one
