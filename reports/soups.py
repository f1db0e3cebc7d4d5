"""Soups of runs on disk: weights averaged, scored, and written as a run's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ensemble.soup import make_soup
from ensemble.tables import aligned
from minbert.json_files import write_json
from multitask.checkpoint import publish
from multitask.evaluation import score_split
from multitask.run import write_split
from multitask.run_folder import remove_run, stored_config
from reports.ensembles import SPLITS, names_of, read_splits
from tasks.metrics import overall
from tasks.predictions import PredictionError, Scores


def soup_runs(
    runs: Sequence[Path], greedy: bool, seed: int, folder: Path, overwrite: bool = False
) -> dict[str, Any]:
    """Average the runs' weights and write `folder` as a run's, with checkpoint and predictions.

    Returns what metrics.json holds; figures are of all dev examples or, for a greedy soup, of the
    half that its members were not selected on.
    """
    if stored_config(folder) is not None and not overwrite:
        raise PredictionError(
            f"{folder}: expected no run, found one; choose another --output, or --overwrite it"
        )
    soup = make_soup(runs, greedy, seed)
    model, tasks, splits = soup.built.model, soup.built.tasks, soup.built.splits
    scores = {
        split: {
            name: score_split(model, task, splits[name][split], soup.config.precision)
            for name, task in tasks.items()
            if split in splits[name]
        }
        for split in SPLITS
    }
    dev, members = {}, {}
    for name, task in tasks.items():
        examples = splits[name]["dev"].examples
        rows = np.setdiff1d(np.arange(len(examples)), soup.half.get(name, []))
        table = Scores(np.array(examples.ids), scores["dev"][name], examples.targets)
        every = aligned({"": table} | read_splits(name, names_of(runs))["dev"])
        assert every.targets is not None
        found = {
            run: task.kind.metrics(task.kind.predictions(values)[rows], every.targets[rows])
            for run, values in zip(every.names, every.values, strict=True)
        }
        dev[name] = found.pop("")
        members[name] = {
            "weights": {run: 1 for run, path in names_of(runs).items() if path in soup.members},
            "dev": found,
            "reported_examples": len(rows),
            "selected_on_examples": len(examples) - len(rows),
        }
    result = {
        "dev": dev | overall(dev),
        "method": "greedy-soup" if greedy else "soup",
        "members": members,
    }
    if stored_config(folder) is not None:
        remove_run(folder)
    (folder / "predictions").mkdir(parents=True, exist_ok=True)
    publish(folder / "checkpoint" / "best", model.save)
    for split in SPLITS:
        write_split(folder, split, tasks, splits, scores[split])
    write_json(folder / "metrics.json", result)
    write_json(folder / "config.json", soup.config.to_json())
    return result
