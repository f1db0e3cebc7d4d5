"""A trained model for inference: one encoder pass and the predictions of every head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from common.errors import RunError
from common.sequences import no_sequence
from common.settings import short
from common.suggestions import suggestion
from minbert.batching import TokenLists
from minbert.bi_encoder import WINDOW
from minbert.precision import autocast, weights_state
from minbert.sentences import characters, check_texts, windows
from minbert.tokenizer import warn_of_truncation
from multitask.assembly import load_trained
from multitask.calibration import read_temperatures
from multitask.config_tasks import build_tasks
from multitask.model import EncoderWithHeads
from multitask.settings.config import RunConfig
from serving.empty_texts import is_empty, warn_of_empty_texts
from serving.joint_encoding import embed_tasks
from serving.prediction import Prediction, count_cut, count_empty, joined, prediction
from serving.run_encoder import bi_encoder_of, check_embeds_texts, check_task, of_one_task
from tasks.base import Task
from tasks.labelled_files import files_of

Columns = Sequence[Sequence[str]]  # one or two columns of n texts
Texts = Sequence[str] | Sequence[tuple[str, str]]
Row = TypeVar("Row", bound=tuple[str, ...])  # the one or two texts of a row


class MultiTaskModel:
    """A trained encoder with the heads of its run, for prediction on new texts.

    Example:
        >>> model = MultiTaskModel.load("runs/my-run")
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
        self.encoders: dict[tuple[str, str | None], nn.Module] = {}
        self.copied: tuple[object, ...] | None = None  # the weights that `encoders` are copies of

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str = "auto",
        max_tokens: int | None = None,
    ) -> MultiTaskModel:
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
        return cls(model, config, read_temperatures(folder), tasks)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.tasks_by_name)

    @property
    def joint(self) -> dict[str, bool]:
        """Return whether each task reads pairs as one sequence."""
        return {name: task.joint for name, task in self.tasks_by_name.items()}

    def readers(self, columns: int) -> list[str]:
        """Return the tasks for rows of `columns` texts; single-text tasks read the first text."""
        return [name for name, task in self.tasks_by_name.items() if task.texts <= columns]

    def predict(
        self,
        texts: Texts,
        tasks: Sequence[str] | None = None,
        precision: str = "fp32",
    ) -> dict[str, Prediction]:
        """Return the predictions by task.

        Args:
            texts: n texts, or n pairs; tasks of single texts read the first text of a pair.
            tasks: tasks of the run to predict; by default all that can read such texts.
            precision: `fp32`, `bf16` or `auto`, as in `BiEncoder.encode`.

        Raises:
            RunError: if a task is not in the run, or needs pairs and `texts` are single texts.
            TypeError, ValueError: if `texts` are not all texts or all pairs.

        Warns:
            common.errors.Notice: if rows are longer than the encoder's limit and
                are cut to it; the message gives their number.
            common.errors.Notice: if rows have an empty text; so does that.
        """
        if isinstance(texts, str):
            raise TypeError("texts: expected a list of texts or pairs, found one string")
        if found := no_sequence(texts, "df[COLUMNS].values.tolist()"):
            raise TypeError(f"texts: expected a list of texts or pairs, found {found}")
        single = (str, int, float, type(None))  # the last three are refused below, with their row
        pairs = []
        for number, row in enumerate(texts):
            if found := no_sequence(row, "tuple(row)"):
                line = f"found {found} at index {number}, counted from 0"
                raise TypeError(f"texts: expected texts or pairs, {line}")
            pairs.append((row,) if isinstance(row, single) else tuple(row))
        width = len(pairs[0]) if pairs else 1
        for number, pair in enumerate(pairs):
            for text in pair:
                check_texts([text], number)
        if width not in (1, 2):
            raise ValueError(f"texts: expected texts or pairs, found {width} texts in a row")
        if any(len(row) != width for row in pairs):
            raise ValueError("texts: expected only texts or only pairs, found both")
        columns = [[row[place] for row in pairs] for place in range(width)]
        names = self.chosen(tasks, width)
        self.renew_copies(precision)
        parts = []
        for begin in range(0, max(1, len(pairs)), WINDOW):
            window = [column[begin : begin + WINDOW] for column in columns]
            parts.append(self.predict_window(window, names, precision))
        result = {name: joined([found[name] for found in parts]) for name in names}
        cut, empty = count_cut(result), count_empty(result)
        warn_of_truncation(cut, len(pairs), "rows", self.model.bi_encoder.tokenizer.max_tokens)
        warn_of_empty_texts(empty, len(pairs))
        return result

    def encode(
        self,
        sentences: Sequence[str],
        precision: str = "fp32",
        normalize: bool | None = None,
        task: str | None = None,
    ) -> np.ndarray:
        """Return embeddings (n, H) in float32; see `BiEncoder.encode`.

        The encoder is the one of `task`. Warn with a Notice if the run has branches
        and `task` is None. Raise RunError as `check_embeds_texts` does.
        """
        self.check_embeds_texts(task)
        model = bi_encoder_of(self.model, task, "task")
        return model.encode(sentences, precision, normalize)

    def check_embeds_texts(self, task: str | None = None) -> None:
        """Raise RunError for a task that is not in a run with branches, or one without texts."""
        check_task(task, self.model.selectable_tasks, "task")
        check_embeds_texts(self.joint, task)

    def embeds_texts(self) -> bool:
        """Return whether the encoder of any task has learnt to embed single texts."""
        return not all(self.joint.values())

    def of_task(self, task: str) -> MultiTaskModel:
        """Return a model of one task, whose encoder has the layers of its own.

        Raise RunError for a task that is not in the run.
        """
        shared = bi_encoder_of(self.model, task, "task")
        config = of_one_task(self.config, task)
        tasks = build_tasks(config)
        model = EncoderWithHeads(shared, tasks, config.seed)
        model.heads[task] = self.model.heads[task]
        kept = {name: one for name, one in self.temperatures.items() if name == task}
        return MultiTaskModel(model, config, kept, tasks)

    def predict_stream(
        self,
        rows: Iterable[Row],
        tasks: Sequence[str] | None = None,
        precision: str = "fp32",
        count: Callable[[int], object] | None = None,
        size: Callable[[Row], int] = characters,
    ) -> Iterator[tuple[list[Row], dict[str, Prediction]]]:
        """Yield windows of a few thousand rows with their predictions, for a stream of any length.

        Only one window is held in memory; it has fewer rows if they are large, where `size` gives
        the characters of a row. `count` is called with the number of rows of each window, for a
        progress bar. The warnings of `predict` are issued after the last row.
        """
        done, cut, empty = 0, 0, 0
        self.renew_copies(precision)
        for window in windows(rows, WINDOW, size):
            for number, row in enumerate(window, done + 1):
                if isinstance(row, str):
                    raise TypeError(
                        f"row {number}: expected a tuple of texts, found one string; write (text,)"
                    )
                if what := no_sequence(row, "tuple(row)"):
                    raise TypeError(f"row {number}: expected a tuple of texts, found {what}")
                if len(row) != len(window[0]):
                    raise RunError(
                        f"row {number}: expected as many texts as in the rows before, "
                        f"{len(window[0])}, found {len(row)}"
                    )
                if len(row) not in (1, 2):
                    raise ValueError(
                        f"row {number}: expected a text or a pair, found {len(row)} texts"
                    )
                for text in row:
                    if not isinstance(text, str):
                        found = short(text)
                        raise TypeError(f"row {number}: expected strings, found {found}")
            columns = list(zip(*window, strict=True))
            names = self.chosen(tasks, len(columns))
            found = self.predict_window(columns, names, precision)
            done += len(window)
            cut, empty = cut + count_cut(found), empty + count_empty(found)
            if count is not None:
                count(len(window))
            yield window, found
            del window, columns, found  # before the next window is read
        warn_of_truncation(cut, done, "rows", self.model.bi_encoder.tokenizer.max_tokens)
        warn_of_empty_texts(empty, done)

    def chosen(self, tasks: Sequence[str] | None, columns: int) -> list[str]:
        """Return the requested tasks; raise RunError for an unknown or unsuitable one."""
        if isinstance(tasks, str):
            raise TypeError(f"tasks: expected a list of names, found one string {tasks!r}")
        able, wanted = self.readers(columns), list(tasks or ())
        if tasks is not None and not wanted:
            raise RunError(f"tasks: expected some of {', '.join(self.tasks)}, or None, found none")
        for name in wanted:
            if name not in self.tasks_by_name:
                meant = suggestion(name, self.tasks)
                raise RunError(f"expected tasks of {', '.join(self.tasks)}, found {name}{meant}")
            if name not in able:
                raise RunError(f"{name}: expected pairs of texts, found single ones")
        if not able:
            raise RunError(f"{', '.join(self.tasks)}: expected pairs of texts, found single ones")
        return wanted or able

    def predict_window(
        self,
        columns: Columns,
        names: Sequence[str],
        precision: str,
    ) -> dict[str, Prediction]:
        """Return the predictions for all rows by task."""
        tokens = self.tokens(columns, names)
        rows = list(zip(*columns, strict=True))
        return self.predictions(rows, tokens, self.scores(tokens, precision))

    @torch.inference_mode()
    def scores(
        self, tokens: Mapping[str, Sequence[TokenLists]], precision: str = "fp32"
    ) -> dict[str, np.ndarray]:
        """Return the scores (n, C) or (n,) by task, from the tokens of each task's texts."""
        heads = self.model.heads
        with autocast(self.model.bi_encoder.device, "fp32"):  # whatever the caller has chosen
            vectors = embed_tasks(self.model, partial(self.encoder, precision), tokens)
            scores = {
                name: self.tasks_by_name[name].scores(heads[name], vectors[name]) for name in tokens
            }
        return {name: one.float().cpu().numpy() for name, one in scores.items()}

    def predictions(
        self,
        rows: Sequence[Sequence[str]],
        tokens: Mapping[str, Sequence[TokenLists]],
        scores: Mapping[str, np.ndarray],
    ) -> dict[str, Prediction]:
        """Return the predictions by task of rows of texts, from their tokens and scores."""
        blank = [
            np.array([is_empty(text) for text in column]) for column in zip(*rows, strict=True)
        ]
        found = {}
        for name, several in tokens.items():
            task = self.tasks_by_name[name]
            empty = np.any(blank[: task.texts], axis=0) if rows else np.zeros(0, bool)
            cut = np.any([one.truncated for one in several], axis=0)
            temperature = self.temperatures.get(name)
            found[name] = prediction(task, scores[name], empty, cut, temperature)
        return found

    def tokens(self, columns: Columns, names: Sequence[str]) -> dict[str, list[TokenLists]]:
        """Return the tokens of each text that each task reads, after the cleaning of its files.

        Texts that several tasks read are tokenised once.
        """
        known: dict[Any, TokenLists] = {}  # cleaning, columns -> tokens

        def of_task(task: Task) -> list[TokenLists]:
            clean, texts = files_of(task.source).clean_text, range(min(task.texts, len(columns)))
            places = [(0, 1)] if task.joint else [(place,) for place in texts]
            for read in places:
                if (clean, read) not in known:
                    cleaned = [[clean(text) for text in columns[place]] for place in read]
                    known[clean, read] = self.model.bi_encoder.tokenizer(*cleaned)
            return [known[clean, read] for read in places]

        return {name: of_task(self.tasks_by_name[name]) for name in names}

    def renew_copies(self, precision: str) -> None:
        """Forget the copies of the encoder in other precisions if a weight has changed."""
        precision = self.model.bi_encoder.choose_precision(precision).precision
        if precision != "fp32" and (state := weights_state(self.model)) != self.copied:
            self.encoders.clear()
            self.copied = state

    def encoder(self, precision: str, task: str | None = None) -> nn.Module:
        """Return the encoder in a precision, with the own layers of a task if it has any.

        A copy is kept until `renew_copies` finds a change. That reads all weights and takes longer
        than one text, so it is done once per call of `predict` and `predict_stream`.
        """
        key = precision, task if task is not None and task in self.model.branches else None
        if key not in self.encoders:
            shared = self.model.bi_encoder.encoder_in(precision)
            self.encoders[key] = self.model.encoder_of(key[1], shared)
        return self.encoders[key]
