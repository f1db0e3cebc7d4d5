"""Finished runs on disk, made of random scores, and the files of a course."""

import json
from dataclasses import replace

import numpy as np
import pytest
from course_files import write_data

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


@pytest.fixture
def make_run(tmp_path):
    """`make_run(name, tasks, skill, seed=..., order=None, **settings)` -> its folder."""

    def make(name, tasks, skill, seed=11711, order=None, **settings):
        folder = tmp_path / name
        (folder / "predictions").mkdir(parents=True)
        mode = "single" if len(tasks) == 1 else "multitask"
        config = replace(RunConfig(mode=mode, tasks=tuple(tasks), seed=seed), **settings)
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
            ids = [f"{task}{row}" for row in rows]
            file = folder / "predictions" / scores_name(task, "dev")
            write_scores(file, Scores(np.array(ids), scores[rows], targets[rows]))
        (folder / "config.json").write_text(json.dumps(config.to_json()))
        (folder / "metrics.json").write_text(json.dumps({"dev": {}}))
        return folder

    return make


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """The folder of a course's files, with labels in the test files, too."""
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder
