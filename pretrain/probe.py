"""Linear evaluation: a logistic regression on the embeddings of a frozen encoder.

This is the usual evaluation of representations (SuperConText, section IV.B). Embeddings have unit
length, the regression is scikit-learn's, and the strength of its regularisation is chosen on dev.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import RunError
from minbert.device import environment
from multitask.assembly import assemble
from multitask.config_tasks import build_tasks
from multitask.loop.evaluation import score_split
from multitask.run_folder import file_digests
from multitask.settings.config import RunConfig
from tasks.base import Task, example_embedding
from tasks.data import Split
from tasks.kinds import Kind
from tasks.predictions import Scores

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # values of C, the inverse of the regularisation
ITERATIONS = 5000
Tables = dict[str, dict[str, Scores]]  # task -> split -> probabilities


class Embedding(nn.Module):
    """One embedding per example from (B, H) per text: (B, H), or (B, 3H) for pairs."""

    def forward(self, *texts: Tensor) -> Tensor:
        return example_embedding(texts)


def frozen_tasks(config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a configuration with the normalised embeddings as scores."""
    return {
        name: replace(
            task,
            kind=replace(task.kind, scores=partial(F.normalize, dim=-1)),
            build_head=lambda width: Embedding(),
        )
        for name, task in build_tasks(config).items()
    }


def linear_evaluation(config: RunConfig) -> tuple[dict[str, Any], Tables, dict[str, str]]:
    """Return a run's metrics, each task's probabilities of dev and test, and `file_digests`.

    The encoder is that of `config`, or of its run `init`. Raise UserError for a task without
    classes and for training examples of only one class.
    """
    begin = time.perf_counter()
    kinds = {name: task.kind for name, task in build_tasks(config).items()}
    tasks, model, splits = assemble(config, frozen_tasks)
    dev, test, chosen = {}, {}, {}
    tables: Tables = {}
    for name, task in tasks.items():
        vectors = {split: score_split(model, task, found) for split, found in splits[name].items()}
        strength, scores = regression(vectors, splits[name], kinds[name], name)
        found = {
            split: kinds[name].measure(scores[split], targets)
            for split in scores
            if (targets := splits[name][split].examples.targets) is not None
        }
        dev[name], chosen[name] = found["dev"], strength
        if "test" in found:
            test[name] = found["test"]
        tables[name] = {}
        for split, values in scores.items():
            examples, predictions = splits[name][split].examples, kinds[name].predictions(values)
            tables[name][split] = Scores(
                np.array(examples.ids), values, examples.targets, predictions=predictions
            )
    result: dict[str, Any] = {"dev": dev} | ({"test": test} if test else {})
    result |= {
        "strength": chosen,
        "seconds": round(time.perf_counter() - begin, 1),
        "environment": environment(str(model.bi_encoder.device)),
    }
    return result, tables, file_digests(config)


def regression(
    vectors: Mapping[str, np.ndarray], splits: Mapping[str, Split], kind: Kind, name: str
) -> tuple[float, dict[str, np.ndarray]]:
    """Return the smallest C with the best main metric on dev, and its probabilities by split."""
    from sklearn.linear_model import LogisticRegression

    if kind.classes is None:
        raise RunError(f"{name}: choose a task with classes; this one has none")
    targets, known = splits["train"].examples.targets, splits["dev"].examples.targets
    assert targets is not None
    assert known is not None
    if len(np.unique(targets)) < 2:
        raise RunError(f"{name}: training needs examples of two classes, found one")
    best, chosen, found = -np.inf, 0.0, {}
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=ITERATIONS).fit(vectors["train"], targets)
        scores = {}
        for split in vectors.keys() - {"train"}:
            scores[split] = np.zeros((len(vectors[split]), kind.classes), np.float32)
            scores[split][:, model.classes_] = model.predict_proba(vectors[split])
        figure = kind.measure(scores["dev"], known)[kind.main_metric]
        if figure > best:
            best, chosen, found = figure, strength, scores
    return chosen, found
