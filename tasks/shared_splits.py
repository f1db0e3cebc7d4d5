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
    return json.dumps({key: found.get(key) for key in keys}, sort_keys=True)


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


def split_of(one: TaskDescription) -> tuple[Any, ...]:
    """Return a key that is equal for tasks that split a training file in the same way."""
    files = one.dev is None, one.test is None
    rows = one.table or (one.separators, one.blank)  # that are split: those with a label
    return *files, one.texts, one.group, one.quotes, rows


def split_key(one: TaskDescription) -> tuple[Any, ...]:
    """Return a key that is equal for tasks whose rows are split together."""
    file = Path(one.train).resolve()
    return file, one.dev, one.test, one.texts, one.group, one.quotes
