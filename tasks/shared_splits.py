"""Own tasks of one file: what they share, and one split for those whose rows are split.

No torch is imported here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.task_description import TaskDescription, from_json


def rows_key(described: TaskDescription) -> str | None:
    """Return a key that is equal for tasks of one table: files, texts, ids and split; else None."""
    if described.table is None:
        return None
    keys = ("train", "dev", "test", "texts", "id", "joint", "quotes", "table", "group")
    found = described.to_json()
    return json.dumps({key: found.get(key) for key in (*keys, "fold", "folds")}, sort_keys=True)


def shared_label_columns(described: Mapping[str, TaskDescription]) -> dict[str, dict[str, str]]:
    """Return by task the label columns, with separators, of all tasks that split the same rows."""
    tables: dict[Any, dict[str, str]] = {}
    for one in described.values():
        tables.setdefault(split_key(one), {}).update(one.table or one.separators)
    return {name: tables[split_key(one)] for name, one in described.items()}


def with_shared_splits(own: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return stored descriptions in which tasks that split the same rows share one table.

    Each would otherwise split the rows that have its label, so that a row could be in train of one
    task and in dev or test of another.
    """
    described = {name: from_json(name, content) for name, content in own.items()}
    counts, tables = Counter(map(split_key, described.values())), shared_label_columns(described)
    return {
        name: replace(one, table=tables[name]).to_json()
        if one.dev is None and counts[split_key(one)] > 1
        else own[name]
        for name, one in described.items()
    }


def split_otherwise(
    own: Mapping[str, Mapping[str, Any]], theirs: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return the tasks of `own` whose dev or test rows may be training rows of tasks of `theirs`.

    Both are stored descriptions. Either a file for dev or test is a training file there, or a
    single file is split otherwise.
    """
    others = [from_json(name, content) for name, content in theirs.items()]
    found = []
    for name, content in own.items():
        one = from_json(name, content)
        held_out = {Path(file).resolve() for file in (one.dev, one.test) if file}
        for other in others:
            file = Path(other.train).resolve()
            same_file = one.dev is None and file == Path(one.train).resolve()
            if file in held_out or (same_file and split_of(one) != split_of(other)):
                found.append(name)
                break
    return found


def split_of(one: TaskDescription) -> tuple[Any, ...]:
    """Return a key that is equal for tasks with the same split of the same rows."""
    return *split_key(one), one.table or one.separators


def split_key(one: TaskDescription) -> tuple[Any, ...]:
    """Return a key that is equal for tasks whose rows are split together."""
    file = Path(one.train).resolve()
    return file, one.dev, one.test, one.texts, one.group, one.quotes, one.fold, one.folds
