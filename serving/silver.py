"""Silver pairs: training sentences paired by search or at random, and labelled by a trained run.

Augmented SBERT (Thakur et al., 2021): a cross-encoder, trained on few gold pairs, labels further
pairs of the same sentences, from which a bi-encoder then learns. The reader is `tasks/silver.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic_files import atomic_writer
from common.csv_rows import row_writer
from common.environment import now
from common.errors import RunError, SettingsError
from common.json_files import write_json
from common.progress import bar
from minbert.bi_encoder import BiEncoder
from multitask.config_tasks import plain_tasks
from multitask.settings.config import RunConfig
from multitask.settings.methods import UserMethods
from multitask.soft_targets import stored_or_computed
from multitask.storage.run_folder import RunFolder
from reports.tables import Table
from serving.proposals import Proposal, random_pairs, semantic_pairs
from serving.rows import embeddings_of
from tasks import CS224N, DECLARED, build_task, data_folder
from tasks.base import Task
from tasks.labelled_files import files_of
from tasks.readers import Examples, limit_of, normalise_text
from tasks.silver import held_out_texts, provenance_file

PART = 20_000  # pairs per file of scores in the teacher's folder: an interrupted command goes on
BINS = 5  # of the distribution of similarities


@dataclass(frozen=True)
class Teacher:
    """A finished run that labels pairs of one of its tasks."""

    folder: Path
    config: RunConfig
    task: Task


@dataclass(frozen=True)
class Search:
    """How pairs are proposed: each sentence with one of its `neighbours` by an encoder.

    `name` is the encoder's in the provenance, and `cut` holds its width and layers if it is cut.
    """

    encoder: BiEncoder
    name: str
    neighbours: int
    precision: str = "fp32"
    cut: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Pool:
    """Distinct sentences of the training examples of a task, and its gold pairs.

    `gold` (g, 2) are rows of `sentences`, the smaller first. No sentence is in dev or test.
    """

    sentences: list[str]
    gold: np.ndarray
    left_out: Mapping[str, int]
    checksum: str  # SHA-256 of the training examples


@dataclass(frozen=True)
class SilverPairs:
    """Labelled pairs: rows (k, 2) of the pool's sentences, and the teacher's scores."""

    pool: Pool
    pairs: np.ndarray
    gold: int  # proposed pairs that were left out because they are gold
    scores: np.ndarray
    labels: Labels


def open_teacher(
    folder: Path, task: str | None = None, use: UserMethods = (), **changed: Any
) -> Teacher:
    """Return a run as the teacher of its task of pairs; `changed` are settings such as `data`.

    Raise RunError for an export, and if the run has no task of pairs, or several and no `task`.
    """
    run = RunFolder(folder)
    run.check_not_exported()
    config = run.model_config(use)
    config = config.changed(**changed) if changed else config
    return Teacher(folder, config, pair_task(config, task, folder))


def label_pairs(
    teacher: Teacher, target: Path, count: int, seed: int, search: Search | None = None
) -> SilverPairs:
    """Pair training sentences of the teacher's task, label the pairs, and write them as a file.

    At most `count` pairs are drawn from the nearest ones that a search finds, or from all pairs
    without one. Scores are kept in the teacher's folder, so that an interrupted call goes on. Raise
    RunError if there are no pairs but gold ones.
    """
    pool = pool_of(teacher.config, teacher.task)
    how: dict[str, Any] = {"proposals": "random" if search is None else "semantic", "seed": seed}
    if search is None:
        found = random_pairs(len(pool.sentences), pool.gold, count, seed)
    else:
        how |= {"encoder": search.name, "neighbours": search.neighbours, **search.cut}
        how["precision"] = search.precision
        embeddings = embeddings_of(pool.sentences, search.encoder, search.precision)
        found = semantic_pairs(embeddings, pool.gold, search.neighbours, count, seed)
    if not len(found.pairs):
        expected = f"pairs of {teacher.task.name} that are not gold"
        raise RunError(f"{teacher.folder}: expected {expected}, found none")
    texts = [[pool.sentences[row] for row in column] for column in found.pairs.T]
    scores = scores_of(teacher, texts)
    labels = written_labels(teacher.task, scores, scale_of(teacher.config, teacher.task))
    provenance = provenance_of(teacher, pool, found, how)
    write_silver(target, teacher.task, texts, labels, provenance)
    return SilverPairs(pool, found.pairs, found.gold, scores, labels)


def pair_task(config: RunConfig, name: str | None, folder: Path) -> Task:
    """Return the task of a run whose pairs get labels.

    Raise RunError if there is none, and SettingsError for another `name` or several and none. A
    task needs pairs with one class or a number, in a column of its files.
    """
    tasks = plain_tasks(config)
    able = [
        name
        for name, task in tasks.items()
        if task.texts == 2 and task.kind.labels is None and files_of(task.source).label_column
    ]
    if name is None and len(able) == 1:
        name = able[0]
    if name is None or name not in able:
        if able:
            line = f"expected one of {', '.join(able)}, the tasks of pairs of {folder}"
            raise SettingsError(f"task: {line}, found {name or 'none'}")
        line = "expected a run with a task of pairs that predicts a class or a number"
        raise RunError(f"{folder}: {line}, found {', '.join(tasks)}")
    return tasks[name]


def pool_of(config: RunConfig, task: Task) -> Pool:
    """Return the training sentences of a task that are not in dev or test.

    Sentences are compared by `normalise_text`. Dev and test are those of the run's tasks
    and of the CS224N tasks, as far as their files are there.
    """
    folder = data_folder(config.data)
    examples = task.read(folder, "train", limit_of(config.limit, task.name))
    tasks = [*plain_tasks(config).values(), *map(build_task, CS224N)]
    held = held_out_texts([one.source for one in tasks], folder)
    distinct: dict[str, str] = {}
    for column in examples.texts:
        for text in column:
            distinct.setdefault(normalise_text(text), text)
    distinct.pop("", None)
    kept = {key: text for key, text in distinct.items() if key not in held}
    row = {key: number for number, key in enumerate(kept)}
    pairs = [tuple(map(normalise_text, pair)) for pair in zip(*examples.texts, strict=True)]
    gold = {tuple(sorted((row[a], row[b]))) for a, b in pairs if a in row and b in row and a != b}
    every, fresh = (len(one) * (len(one) - 1) // 2 for one in (distinct, kept))
    content = repr((examples.ids, examples.texts, np.asarray(examples.targets).tolist()))
    return Pool(
        list(kept.values()),
        np.array(sorted(gold), np.int64).reshape(-1, 2),
        {
            "sentences of dev or test": len(distinct) - len(kept),
            "possible pairs with them": every - fresh,
        },
        hashlib.sha256(content.encode()).hexdigest(),
    )


def scores_of(teacher: Teacher, texts: Sequence[list[str]]) -> np.ndarray:
    """Return a run's scores of pairs, (n, C) or (n,), kept in its folder part by part."""
    count, found = len(texts[0]), []
    run = (teacher.folder, teacher.config, teacher.task)
    with bar(f"label {teacher.task.name}", "pair", count) as progress:
        for begin in range(0, count, PART):
            columns = tuple(column[begin : begin + PART] for column in texts)
            ids = [str(row) for row in range(begin, begin + len(columns[0]))]
            part = Examples(ids, columns, None)
            found.append(stored_or_computed(*run, part, False).scores.numpy())
            progress.update(len(ids))
    return np.concatenate(found)


@dataclass(frozen=True)
class Labels:
    """The labels of pairs as their task's files have them, and further columns of scores."""

    texts: list[str]
    scores: Mapping[str, list[str]]


def written_labels(task: Task, scores: np.ndarray, scale: tuple[float, float]) -> Labels:
    """Convert scores, (n, C) or (n,), to fields of a file; `scale` is that of similarities.

    A bi-encoder's similarity may be off the scale by rounding or more; its label is not. Numbers
    without a scale are written as in prediction files.
    """
    values = task.kind.predictions(scores)
    if task.kind.classes is None:
        low, high = scale
        if not np.isfinite(low) and task.output is not None:
            return Labels([task.output.show(value) for value in values], {})
        exact = [round(float(value) + low, 4) for value in values]
        return Labels([str(min(max(value, low), high)) for value in exact], {})
    names = class_labels(task)
    columns = {
        f"probability of {name}": [f"{value:.6f}" for value in column]
        for name, column in zip(names, scores.T, strict=True)
    }
    return Labels([names[int(value)] for value in values], columns)


def class_labels(task: Task) -> list[str]:
    """Return the labels of the classes in the files of a task."""
    count = task.kind.classes or 0
    if task.name in DECLARED:
        return list(DECLARED[task.name].labels[:count])
    return [task.output.show(value) if task.output else str(value) for value in range(count)]


def scale_of(config: RunConfig, task: Task) -> tuple[float, float]:
    """Return the lowest and highest similarity in a task's files; infinite for other numbers."""
    own = config.own_tasks.get(task.name)
    if own is not None and task.kind.similarities:
        return float(own["low"]), float(own["high"])
    given = task.output.scale if task.output else None
    return given or (-np.inf, np.inf)


def write_silver(
    target: Path,
    task: Task,
    texts: Sequence[list[str]],
    labels: Labels,
    provenance: Mapping[str, Any],
) -> None:
    """Write a CSV or TSV file of pairs, and before it, its provenance beside it; both atomically.

    The columns are those of the task's own files, then the scores.
    """
    files = files_of(task.source)
    separator = "," if target.suffix.lower() == ".csv" else "\t"
    with atomic_writer(target) as file:
        writer = row_writer(file, separator)
        writer.writerow([*files.text_columns, files.label_column, *labels.scores])
        writer.writerows(zip(*texts, labels.texts, *labels.scores.values(), strict=True))
        write_json(provenance_file(target), provenance)


def provenance_of(
    teacher: Teacher, pool: Pool, found: Proposal, how: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how silver pairs were made, without the folders of this machine."""
    return {
        "task": teacher.task.name,
        "teacher": teacher.folder.resolve().name,
        "weights": RunFolder(teacher.folder).weights_checksum(),
        "data": pool.checksum,
        "pairs": len(found.pairs),
        **how,
        "left_out": {**pool.left_out, "gold pairs": found.gold},
        "date": now(),
    }


def type_of(config: RunConfig, task: Task) -> str:
    """Return the type of a task as the key `type` of a description has it."""
    if (own := config.own_tasks.get(task.name)) is not None:
        return str(own["type"])
    return "similarity" if task.kind.classes is None else "classification"


def description(teacher: Teacher, target: Path) -> str:
    """Return the description of a task of only the silver pairs, for `--task`."""
    task, kind = teacher.task, type_of(teacher.config, teacher.task)
    scale = scale_of(teacher.config, task)
    files, names = files_of(task.source), class_labels(task)
    columns = [f"text={name}" for name in files.text_columns]
    parts = [*columns, f"label={files.label_column}"]
    if task.kind.classes is None:
        ends = zip(("low", "high"), scale, strict=True)
        parts += [f"{key}={end}" for key, end in ends if np.isfinite(end)]
    elif not any("|" in name for name in names):
        parts.append(f"labels={'|'.join(names)}")
    escaped = ",".join(part.replace(",", "\\,") for part in parts)
    return f"{task.name[:20]}-silver={target}:type={kind},{escaped}"


def summary(task: Task, found: SilverPairs) -> Table:
    """Return a table of counts and of the distribution of the labels."""
    count = max(1, len(found.pairs))
    rows = [["training sentences", f"{len(found.pool.sentences):,}"]]
    rows += [[f"left out: {what}", f"{number:,}"] for what, number in found.pool.left_out.items()]
    rows += [["left out: gold pairs", f"{found.gold:,}"]]
    rows += [["silver pairs", f"{len(found.pairs):,}"]]
    if task.kind.classes is None:
        values = np.array(found.labels.texts, np.float64)
        numbers, ends = np.histogram(values, BINS)
        titles = [f"{low:.2f} to {high:.2f}" for low, high in pairwise(ends)]
    else:
        names, chosen = class_labels(task), found.scores.argmax(1)
        numbers = np.bincount(chosen, minlength=len(names))
        titles = [f"label {name}" for name in names]
    rows += [
        [title, f"{number:,} ({number / count:.0%})"]
        for title, number in zip(titles, numbers, strict=True)
    ]
    return ["", "count"], rows
