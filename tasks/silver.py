"""Silver pairs: texts that a trained run has labelled (Augmented SBERT; Thakur et al., 2021).

`--mode mine --teacher RUN --as-task FILE` writes them, with their provenance beside the file. Here
they are read: as more training examples of their task, or as an own task. No silver pair may
contain a text of dev or test. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from common.json_files import read_json
from tasks.labelled_files import LabelledFiles, Source, files_of
from tasks.readers import Examples, Limit, normalise_text
from tasks.splits import existing_files
from tasks.text_files import DataError

if TYPE_CHECKING:
    from tasks.base import Task


def provenance_file(file: Path) -> Path:
    """Return the file with the provenance of silver pairs, beside theirs."""
    return file.with_name(f"{file.name}.provenance.json")


def is_silver(file: str | Path) -> bool:
    """Return whether a file holds silver pairs: whether its provenance is beside it."""
    return provenance_file(Path(file)).exists()


def silver_task(file: Path) -> str:
    """Return the name of the task that silver pairs are for; raise DataError without one."""
    if not is_silver(file):
        expected = f"{provenance_file(file).name} beside it, from --mode mine --as-task"
        raise DataError(f"{file}: expected {expected}, found none")
    name = read_json(provenance_file(file), DataError).get("task")
    if not isinstance(name, str):
        raise DataError(f"{provenance_file(file)}: expected the name of a task, found {name!r}")
    return name


def held_out_texts(sources: Sequence[Source], folder: Path) -> dict[str, str]:
    """Return each text of dev and test as `normalise_text` does, with the file that has it.

    Splits without a file have none, and splits of a file of silver pairs do not count.
    """
    found: dict[str, str] = {}
    for source in sources:
        for split, file in existing_files(source, folder).items():
            where = str(file)
            if split == "train" or is_silver(where):
                continue
            for column in source.read(folder, split).texts:
                found |= dict.fromkeys(map(normalise_text, column), where)
    found.pop("", None)
    return found


@dataclass(frozen=True)
class WithSilver:
    """A source whose training examples include silver pairs from files, or are silver themselves.

    A silver pair with a text of dev or test of the `others` is an error that names its row or, with
    `drop`, is left out and counted. `tasks` are all tasks of the run: a file for another one is an
    error. Pairs of a class from `classes` on are left out, as the run leaves out this class.
    """

    source: Source
    task: str
    tasks: tuple[str, ...]
    classes: int | None
    files: tuple[str, ...]
    others: tuple[Source, ...]
    drop: bool

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split)

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        found = self.source.read(folder, split, limit)
        if split != "train":
            return found
        held = held_out_texts(self.others, folder)
        where = self.where(folder, split)
        if is_silver(where):
            found = self.without(held, found, where)
        for file in map(Path, self.files):
            if (name := silver_task(file)) not in self.tasks:
                raise DataError(
                    f"{file}: expected silver pairs of {', '.join(self.tasks)}, found those of "
                    f"{name}"
                )
            if name == self.task:
                found = joined(found, self.without(held, self.pairs(file), str(file)))
        return found

    def pairs(self, file: Path) -> Examples:
        """Return the pairs of a file, which has the columns and labels of the task's own files."""
        read = silver_files(self.source, file).read(file.parent, "train")
        assert read.targets is not None, "silver pairs have labels"
        if self.classes is None:
            return read
        return read.select(np.flatnonzero(read.targets < self.classes))

    def without(self, held: Mapping[str, str], examples: Examples, where: str) -> Examples:
        """Return the examples without those that have a text in `held`."""
        fresh = np.ones(len(examples), bool)
        for column in examples.texts:
            for row, text in enumerate(column):
                if (place := held.get(normalise_text(text))) is None:
                    continue
                fresh[row] = False
                if not self.drop:
                    raise DataError(
                        f"{where}, row {examples.ids[row]}: expected silver pairs without texts of "
                        f"dev or test, found one of {place}: {text[:60]!r}; --drop-leaks leaves "
                        "such rows out"
                    )
        if not fresh.any():
            raise DataError(f"{where}: expected pairs without texts of dev or test, found none")
        leaked = examples.leaked + int((~fresh).sum())
        return replace(examples.select(np.flatnonzero(fresh)), leaked=leaked)


def silver_files(source: Source, file: Path) -> LabelledFiles:
    """Return the reader of a file of silver pairs for the task of a source."""
    return replace(
        files_of(source),
        files={"train": str(file.absolute())},
        other_files=None,
        places=(".",),
        id_column=None,
        quoted=True,
        header=None,
        comma=None,
    )


def joined(gold: Examples, silver: Examples) -> Examples:
    """Return gold and silver examples, in this order."""
    assert silver.targets is not None, "silver pairs have labels"
    counted = None if gold.drawn_from is None else gold.drawn_from + len(silver)
    ids = [f"silver-{one}" for one in silver.ids]
    together = gold.followed_by(ids, silver.texts, silver.targets)
    return replace(together, leaked=gold.leaked + silver.leaked, drawn_from=counted)


def with_silver(
    tasks: Mapping[str, Task],
    own_tasks: Mapping[str, Mapping[str, Any]],
    files: Sequence[str],
    further: Sequence[Source],
    drop: bool,
) -> dict[str, Task]:
    """Return a run's tasks with the silver pairs in `files`, and checked own tasks of such pairs.

    No silver pair may have a text of dev or test of these tasks or of the `further` sources. A task
    without silver pairs keeps its source.
    """
    others = (*further, *(task.source for task in tasks.values()))
    found = {}
    for name, task in tasks.items():
        own = name in own_tasks and is_silver(str(own_tasks[name]["train"]))
        if own or (files and task.texts == 2):
            shape = task.kind.classes, tuple(files)
            source = WithSilver(task.source, name, tuple(tasks), *shape, others, drop)
            # Ids of silver pairs are those of their file: not of rows that tasks share.
            task = replace(task, source=source, shares_rows=None)
        found[name] = task
    return found
