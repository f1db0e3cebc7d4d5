"""Writing the predictions for a file of texts, row by row, as a table or as a GLUE submission."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, TextIO

from common.errors import RunError
from common.progress import bar
from multitask.settings.config import RunConfig
from serving.model import MultiTaskModel
from serving.prediction import Prediction
from serving.prediction_table import PredictionOptions, PredictionTable
from serving.row_file import RowFile
from serving.run_encoder import report_precision
from tasks import DECLARED
from tasks.base import Task
from tasks.text_files import DataError

# Tasks of GLUE's leaderboard. WNLI is not supported; AX is predicted by the head of MNLI.
SUBMITTED = ("cola", "sst2", "mrpc", "sts", "qqp", "mnli", "qnli", "rte")


class Written(NamedTuple):
    """The number of rows that were written, and the time when the model was loaded."""

    rows: int
    loaded: float


def write_predictions(
    run: str,
    source: RowFile,
    file: TextIO,
    options: PredictionOptions,
    machine: RunConfig,
) -> Written:
    """Write each row of a file with its predictions.

    `machine` gives device, precision and limit of tokens. Raises DataError if the source changes
    meanwhile.
    """
    version, rows = source.version(), source.rows()
    first = next(rows, None)  # reports faulty input before the model is loaded
    if first is None and source.file is not None:
        raise DataError(f"{source.file}: expected rows to predict, found none")
    model = MultiTaskModel.load(run, machine.device, machine.max_tokens)
    precision = model.model.bi_encoder.choose_precision(machine.precision)
    loaded = time.perf_counter()
    if first is None:
        return Written(0, loaded)
    task = submitted_task(options, model, len(source.columns)) if options.glue else None
    write, count = window_writer(file, source, options, task), 0
    total = None if file is sys.stdout else 0  # the number of rows is unknown; no bar on stdout
    with bar("predict", "row", total) as progress:
        every = chain([first], rows)
        predicted = model.predict_stream(
            every, options.tasks, precision.precision, progress.update, lambda row: row.characters
        )
        for window, found in predicted:
            source.check_unchanged(version)
            write(window, found)
            file.flush()
            count += len(window)
            del window, found  # before the next one is read
    source.check_unchanged(version)  # again after the last row: the file may have become shorter
    report_precision(machine.precision, precision)
    return Written(count, loaded)


def window_writer(
    file: TextIO, source: RowFile, options: PredictionOptions, task: Task | None
) -> Callable[[Any, Mapping[str, Prediction]], None]:
    """Return the function that writes the rows of a window: a table, or a submission of `task`."""
    marked = source.file is not None
    table = PredictionTable(file, options.separator, options.probabilities, marked)
    if task is None:
        return table.write
    indices = iter(list(source.indices()))
    table.write_rows([["index", "prediction"]])
    return lambda window, found: table.write_rows(glue_rows(task, found[task.name], indices))


def submitted_task(options: PredictionOptions, model: MultiTaskModel, texts: int) -> Task:
    """Return the one task of a GLUE submission."""
    names = model.chosen(options.tasks, texts)
    if len(names) != 1:
        raise RunError(f"--glue: expected one task, found {', '.join(names)}; choose by --tasks")
    if names[0] not in SUBMITTED:
        raise RunError(f"--glue: expected a task of {', '.join(SUBMITTED)}, found {names[0]}")
    return model.tasks_by_name[names[0]]


def glue_rows(task: Task, found: Prediction, indices: Iterator[str]) -> list[list[Any]]:
    """Return rows of an index and a prediction, with classes written as in GLUE's files.

    A leaderboard wants a value for each row, so rows with an empty text have one too.
    """
    if task.kind.classes is None:
        pairs = zip(found.labels, found.values, strict=True)
        return [[next(indices), label or str(value)] for label, value in pairs]
    labels = DECLARED[task.name].labels if task.name in DECLARED else ("0", "1")
    return [[next(indices), labels[int(value)]] for value in found.values]
