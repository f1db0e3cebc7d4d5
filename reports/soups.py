"""Soups of runs on disk: weights averaged, scored, and written as a run's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ensemble.alignment import aligned
from ensemble.soup import Soup, make_soup, soup_config
from multitask.evaluation import score_split
from reports.ensembles import SPLITS, names_of, read_splits, tasks_of_run
from reports.merged_run import check_output, write_merged_run
from tasks.metrics import overall
from tasks.predictions import Scores

SOUP = ""  # its name among its members', which are never empty


def soup_runs(
    runs: Sequence[Path], greedy: bool, seed: int, folder: Path, overwrite: bool = False
) -> dict[str, Any]:
    """Average the runs' weights and write `folder` as a run's, with checkpoint and predictions.

    Returns what metrics.json holds; figures are of all dev examples or, for a greedy soup, of the
    half that its members were not selected on.
    """
    method = "greedy-soup" if greedy else "soup"
    for run in runs:
        tasks_of_run(run)  # or it is not finished
    base = replace(soup_config(runs), seed=seed)
    config = base.to_json() | {"method": method, "members": [str(run) for run in runs]}
    check_output(folder, config, runs, overwrite)
    soup = make_soup(runs, greedy, seed)
    tables = {name: score_soup(soup, name) for name in soup.built.tasks}
    dev, members = {}, {}
    for name, task in soup.built.tasks.items():
        table = tables[name]["dev"]
        alone = read_splits(name, names_of(runs), task.kind.classes)["dev"]
        every = aligned({SOUP: table} | alone, task.kind.predictions)
        seen = every.selected_on
        if seen.any():
            tables[name]["dev"] = replace(table, selected_on=seen)
        assert every.targets is not None
        metrics = {
            run: task.kind.metrics(predictions[~seen], every.targets[~seen])
            for run, predictions in zip(every.names, every.predictions, strict=True)
        }
        dev[name] = metrics.pop(SOUP)
        members[name] = {
            "weights": {run: 1 for run, path in names_of(runs).items() if path in soup.members},
            "dev": metrics,
            "reported_examples": int((~seen).sum()),
            "selected_on_examples": int(seen.sum()),
        }
    result = {"dev": dev | overall(dev), "method": method, "members": members}
    write_merged_run(folder, config, result, tables, soup.built.model.save)
    return result


def score_soup(soup: Soup, name: str) -> dict[str, Scores]:
    """What the soup says of each split of a task."""
    task, splits = soup.built.tasks[name], soup.built.splits[name]
    found = {}
    for split in SPLITS:
        if split not in splits:
            continue
        values = score_split(soup.built.model, task, splits[split])
        examples, seen = splits[split].examples, None
        if split == "dev" and name in soup.half:
            seen = np.isin(np.arange(len(examples)), soup.half[name])
        predictions = task.kind.predictions(values)
        found[split] = Scores(np.array(examples.ids), values, examples.targets, predictions, seen)
    return found
