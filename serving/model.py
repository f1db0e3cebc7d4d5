"""A trained model for inference: one encoder pass and the predictions of every head."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.errors import Notice, RunError, SettingsError, suggestion
from common.progress import bar
from minbert.batching import TokenLists, concatenated
from minbert.bi_encoder import WINDOW, BiEncoder
from minbert.device import choose_device
from minbert.precision import autocast
from minbert.sentences import check_texts
from minbert.tokenizer import warn_of_truncation
from multitask.assembly import load_trained
from multitask.config_tasks import build_tasks
from multitask.loop.evaluation import check_scores
from multitask.model import EncoderWithHeads
from multitask.runs import CALIBRATION, Run
from multitask.settings.config import RunConfig
from serving.prediction import (
    Prediction,
    is_empty,
    joined,
    prediction,
    rows_with,
    warn_of_empty_texts,
)
from tasks.base import Task
from tasks.readers import files_of

Columns = Sequence[Sequence[str]]  # one or two columns of n texts


class MultiTaskModel:
    """A trained encoder with the heads of its run, for prediction on new texts.

    Example:
        >>> model = load("runs/my-run")
        >>> found = model.predict([("A cat sleeps.", "A cat is asleep.")])
        >>> found["sts"].values, found["qqp"].labels
        (array([4.6]), ['the same question'])
    """

    def __init__(
        self,
        model: EncoderWithHeads,
        config: RunConfig,
        temperatures: Mapping[str, float] | None = None,
        tasks: Mapping[str, Task] | None = None,
    ) -> None:
        self.model, self.config = model.eval(), config
        self.temperatures = temperatures or {}
        self.tasks_by_name = build_tasks(config) if tasks is None else tasks

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle weights and settings; the best device is chosen anew where they are loaded."""
        return unpickled, (copy.deepcopy(self.model).cpu(), self.config, self.temperatures)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.tasks_by_name)

    def predict(
        self,
        texts: Sequence[str] | Sequence[Sequence[str]],
        tasks: Sequence[str] | None = None,
        precision: str = "fp32",
        progress: bool = False,
    ) -> dict[str, Prediction]:
        """Return the predictions by task.

        Args:
            texts: n texts, or n pairs; tasks of single texts read the first text of a pair.
            tasks: tasks of the run to predict; by default all that can read such texts.
            precision: `fp32`, `bf16` or `auto`, as in `BiEncoder.encode`.
            progress: whether to show a progress bar on standard error.

        Raises:
            RunError: if a task is not in the run, or needs pairs and `texts` are single texts, and
                if `texts` are not all texts or all pairs.
            TypeError: for anything but texts in an order.

        Warns:
            common.errors.Notice: with the number of rows that are longer than the encoder's limit
                and are cut to it, and of those that have an empty text.
        """
        if isinstance(texts, str | Mapping | Set) or hasattr(texts, "columns"):
            found = f"{type(texts).__name__}; of a data frame, give df[COLUMNS].values.tolist()"
            raise TypeError(f"texts: expected a list of texts or pairs, found a {found}")
        several = tuple | list | np.ndarray
        rows = [tuple(row) if isinstance(row, several) else (row,) for row in texts]
        widths = {len(row) for row in rows} or {1}
        if len(widths) > 1 or not widths <= {1, 2}:
            found = " and ".join(map(str, sorted(widths)))
            raise RunError(f"texts: give only texts or only pairs, found {found} in a row")
        columns: Columns = list(zip(*rows, strict=True)) or [[]]
        for column in columns:
            check_texts(column)
        names = self.chosen(tasks, len(columns))
        parts = []
        with bar("predict", "row", len(rows) if progress else None) as shown:
            for begin in range(0, max(1, len(rows)), WINDOW):
                window = [one[begin : begin + WINDOW] for one in columns]
                parts.append(self.predict_window(window, names, precision))
                shown.update(len(window[0]))
        result = {name: joined([found[name] for found in parts]) for name in names}
        empty, cut = (int(rows_with(mark, result.values()).sum()) for mark in ("empty", "cut"))
        warn_of_truncation(cut, len(rows), "rows", self.model.bi_encoder.tokenizer.max_tokens)
        warn_of_empty_texts(empty, len(rows))
        return result

    def chosen(self, tasks: Sequence[str] | None, texts: int) -> list[str]:
        """Return the tasks for rows of `texts` texts: the requested ones, or all that fit.

        Raise SettingsError for an unknown task, and RunError for one that needs pairs.
        """
        if isinstance(tasks, str):
            raise TypeError(f"tasks: expected a list of names, found one string {tasks!r}")
        able = [name for name, task in self.tasks_by_name.items() if task.texts <= texts]
        wanted = list(dict.fromkeys(tasks or able))
        for name in wanted:
            self.check_known(name)
        if not wanted or not {*wanted} <= {*able}:
            names = [name for name in wanted or self.tasks if name not in able]
            raise RunError(f"{', '.join(names)}: give pairs of texts, not single texts")
        return wanted

    def check_known(self, task: str) -> None:
        """Raise SettingsError for a task that is not in the run."""
        if task not in self.tasks_by_name:
            meant = suggestion(task, self.tasks)
            raise SettingsError(
                f"task: expected one of {', '.join(self.tasks)}, found {task}{meant}"
            )

    def predict_window(
        self, columns: Columns, names: Sequence[str], precision: str = "fp32"
    ) -> dict[str, Prediction]:
        """Return the predictions by task of n rows, all at once."""
        tokens = self.tokens(columns, names)
        scores = self.scores(tokens, precision)
        blank = [np.array([is_empty(text) for text in column], bool) for column in columns]
        found = {}
        for name in names:
            task = self.tasks_by_name[name]
            empty = np.any(blank[: task.texts], axis=0)
            cut = np.any([one.truncated for one in tokens[name]], axis=0)
            found[name] = prediction(task, scores[name], empty, cut, self.temperatures.get(name))
        return found

    def tokens(self, columns: Columns, names: Sequence[str]) -> dict[str, list[TokenLists]]:
        """Return the tokens of each text that each task reads, after the cleaning of its files.

        Texts that several tasks read are tokenised once.
        """
        known: dict[Any, TokenLists] = {}  # cleaning, columns -> tokens

        def of_task(task: Task) -> list[TokenLists]:
            clean = files_of(task.source).clean_text
            places = [(0, 1)] if task.joint else [(place,) for place in range(task.texts)]
            for read in places:
                if (clean, read) not in known:
                    cleaned = [[clean(text) for text in columns[place]] for place in read]
                    known[clean, read] = self.model.bi_encoder.tokenizer(*cleaned)
            return [known[clean, read] for read in places]

        return {name: of_task(self.tasks_by_name[name]) for name in names}

    @torch.inference_mode()
    def scores(
        self, tokens: Mapping[str, Sequence[TokenLists]], precision: str = "fp32"
    ) -> dict[str, np.ndarray]:
        """Return the scores (n, C) or (n,) by task, from the tokens of each task's texts.

        Tasks with the same encoder and pooling share a pass, which encodes equal texts once.
        """
        model, found = self.model, {}
        passes: dict[tuple[str | None, bool], list[str]] = {}
        for name in tokens:
            own = name in model.branches or model.pooling_of(name) is not None
            key = name if own else None, self.tasks_by_name[name].joint
            passes.setdefault(key, []).append(name)
        for (own_of, _), names in passes.items():
            every = concatenated([one for name in names for one in tokens[name]])
            rows, which = every.distinct()
            vectors = model.bi_encoder_of(own_of).encode_window(
                every.select(rows),
                precision,
                pool=model.pooling_of(own_of),
                width=model.embedding_width(own_of),
            )
            lengths = [len(one) for name in names for one in tokens[name]]
            spread = torch.from_numpy(vectors[which]).to(model.bi_encoder.device)
            parts = iter(spread.split(lengths))
            with autocast(model.bi_encoder.device, "fp32"):  # whatever the caller has chosen
                for name in names:
                    embeddings = tuple(next(parts) for _ in tokens[name])
                    scores = self.tasks_by_name[name].scores(model.heads[name], embeddings)
                    found[name] = scores.float().cpu().numpy()
                    check_scores(self.tasks_by_name[name], found[name])
        return found

    def encode(
        self,
        sentences: Sequence[str],
        precision: str = "fp32",
        normalize: bool | None = None,
        task: str | None = None,
    ) -> np.ndarray:
        """Return embeddings (n, H) in float32; see `BiEncoder.encode` and `bi_encoder_of`."""
        return self.bi_encoder_of(task).encode(sentences, precision, normalize)

    def bi_encoder_of(self, task: str | None = None) -> BiEncoder:
        """Return the encoder, with the own layers of a task if it has any.

        Raise RunError as `check_embeds_texts` does. Warn with a Notice for None if tasks have own
        layers.
        """
        self.check_embeds_texts(task)
        if task is None and self.model.branches:
            names = ", ".join(self.model.branches)
            line = f"the embeddings are of the shared encoder; for a branch, give its task: {names}"
            warnings.warn(line, Notice, stacklevel=3)
        return self.model.bi_encoder_of(task)

    def check_embeds_texts(self, task: str | None = None) -> None:
        """Raise RunError for an unknown task, and for an encoder that reads only joint pairs."""
        if task is not None:
            self.check_known(task)
        if not self.embeds_texts(task):
            line = "the run reads pairs as one sequence, and cannot embed single texts"
            raise RunError(f"{line}: {task or ', '.join(self.tasks)}")

    def embeds_texts(self, task: str | None = None) -> bool:
        """Return whether the encoder of a task, or of any, has learnt to embed single texts."""
        several = self.tasks if task is None or task not in self.model.branches else (task,)
        return not all(self.tasks_by_name[name].joint for name in several)

    def of_task(self, task: str) -> MultiTaskModel:
        """Return a model of one task, whose encoder has the layers of its own.

        Raise RunError for a task that is not in the run.
        """
        self.check_known(task)
        config = of_one_task(self.config, task)
        tasks = build_tasks(config)
        model = EncoderWithHeads(self.model.bi_encoder_of(task), tasks, config.seed)
        model.heads[task] = self.model.heads[task]
        kept = {name: one for name, one in self.temperatures.items() if name == task}
        return MultiTaskModel(model, config, kept, tasks)


def load(folder: str | Path, device: str = "auto", max_tokens: int | None = None) -> MultiTaskModel:
    """Load a run or an exported run.

    Args:
        folder: folder with `best`, or with `run.json` beside the weights.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        max_tokens: limit of a text in tokens; None for that of the run.

    Raises:
        RunError, EncoderError: if the folder cannot be used; the message is one line.
        SettingsError: for a device that is unknown or missing.
    """
    folder = Path(folder).expanduser()
    config, tasks, model = load_trained(folder, device, max_tokens)
    return MultiTaskModel(model, config, Run(folder).read(CALIBRATION), tasks)


def unpickled(
    model: EncoderWithHeads, config: RunConfig, temperatures: Mapping[str, float]
) -> MultiTaskModel:
    return MultiTaskModel(model.to(choose_device("auto")), config, temperatures)


def of_one_task(config: RunConfig, task: str) -> RunConfig:
    """Return the configuration of a run, reduced to one of its tasks and without branches."""
    one: dict[str, Any] = {"mode": "", "tasks": (config.tasks[task],), "branch": None}
    if isinstance(config.limit, Mapping):
        one["limit"] = config.limit.get(task)
    methods = {"combiner": "sum", "sampling": "round-robin", "schedule": "joint"}
    return replace(config, **one, **methods, regularizers=(), teacher=())
