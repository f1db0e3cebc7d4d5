"""Faults of the ids of a prediction file, beside those of the data and of the files next to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from multitask.storage.run_folder import run_of_predictions
from reports.submissions.fault_kinds import Faults
from reports.submissions.known_splits import recognise, short_id
from reports.submissions.prediction_files import Predictions
from tasks.readers import Examples

BY_IDS = ("ids of another split", "ids of other data", "missing ids", "test equals dev")
Splits = Mapping[str, Examples]


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


def copies(one: Predictions, files: Iterable[Predictions]) -> str | None:
    """Return evidence that a test file has the ids of the dev file beside it, if it has."""
    if one.split != "test":
        return None
    own = set(one.all_ids)
    for other in files:
        if (other.split, other.task) == ("dev", one.task) and other.file.parent == one.file.parent:
            common = len(own & set(other.all_ids))
            if common and 2 * common >= len(own):
                equal = one.file.read_bytes() == other.file.read_bytes()
                same = "the same bytes" if equal else f"{common:,} ids"
                return f"{same} of {len(own):,} rows are in {other.file.name}"
    return None


def id_faults(
    one: Predictions, there: int, split: str | None, splits: Splits, subset: bool
) -> Faults:
    """Yield what is wrong with the ids of a file, of which `there` are in this split of the data.

    A row of the data may have a blank label.
    """
    examples = splits.get(split) if split else None
    if examples is None:
        if one.split is None and splits and one.all_ids:
            yield "ids of other data", f"no id is in {', '.join(splits)}{origin_of(one)}"
        return
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
    stored = run_of_predictions(one.file).settings_if_any() or {}
    named += [f"its run read --data {stored['data']}"] if "data" in stored else []
    return "".join(f"; {text}" for text in named)
