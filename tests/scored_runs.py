"""Finished runs on disk, made of random scores."""

from pathlib import Path

import numpy as np

from common.files import write_json
from multitask.settings.config import RunConfig
from tasks.predictions import Scores, scores_name, write_scores

COUNT = 80
TARGETS = {
    "sst": np.random.default_rng(1).integers(5, size=COUNT),
    "qqp": np.random.default_rng(2).integers(2, size=COUNT),
    "sst2": np.random.default_rng(4).integers(2, size=COUNT),
    "trec": np.random.default_rng(5).integers(3, size=COUNT),  # of six classes the first three
    "sts": np.random.default_rng(3).uniform(0, 5, size=COUNT).astype(np.float32),
}


def scored_run(folder, tasks, skill, seed=11711, order=None, splits=("dev",), **settings) -> Path:
    """Write a run whose scores are right by the share `skill`; return its folder."""
    (folder / "predictions").mkdir(parents=True)
    mode = "single" if len(tasks) == 1 else "multitask"
    config = RunConfig(mode=mode, tasks=tasks, seed=seed, **settings)
    draw = np.random.default_rng([seed, int(1000 * skill)])
    for task in tasks:
        targets = TARGETS[task]
        if task == "sts":
            scores = skill * targets + (1 - skill) * draw.uniform(0, 5, size=COUNT)
        else:
            classes = targets.max() + 1
            noise = draw.dirichlet(np.ones(classes), size=COUNT)
            scores = skill * np.eye(classes)[targets] + (1 - skill) * noise
        rows = np.arange(COUNT) if order is None else order
        ids = np.array([f"{task}{row}" for row in rows])
        for split in splits:
            labels = targets[rows] if split == "dev" else None
            file = folder / "predictions" / scores_name(task, split)
            write_scores(file, Scores(ids, scores[rows], labels))
    write_json(folder / "config.json", config.to_json())
    write_json(folder / "metrics.json", {"dev": {}})
    return folder
