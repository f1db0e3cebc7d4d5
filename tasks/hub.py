"""Data of the Hugging Face hub as the files of CS224N and GLUE; origins.toml says where it is.

CS224N's own splits of Quora and STS are random; those written here are other random splits of the
same data, of the same sizes and always the same.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from common.csv_rows import row_writer
from tasks import CS224N, DATA_SETS, build_task
from tasks.labelled_files import LabelledFiles, files_of
from tasks.tables import DataError

Rows = list[tuple[Any, ...]]  # the texts of an example, and its label


@dataclass(frozen=True)
class Origin:
    """Location of a task's data on the hub, as described in origins.toml."""

    repo: str
    texts: tuple[str, ...]
    sizes: Mapping[str, int]
    config: str | None = None
    label: str = "label"
    splits: Mapping[str, str] = field(default_factory=dict)


TABLE = Path(__file__).with_name("origins.toml").read_text("utf-8")
ORIGINS = {name: msgspec.convert(one, Origin) for name, one in tomllib.loads(TABLE).items()}


def fetch(name: str, source: Path | None) -> dict[str, Rows]:
    """Return train, dev and test of a task, from the hub, or from `source/NAME` on disk."""
    import datasets

    origin = ORIGINS[name]
    columns = (*origin.texts, origin.label)
    try:
        if source is None:
            found = datasets.load_dataset(origin.repo, origin.config)
        else:
            found = datasets.load_from_disk(str(source / name))
        hub = {
            split: list(zip(*(rows[column] for column in columns), strict=True))
            for split, rows in found.items()
        }
        if origin.splits:
            return {split: hub[key] for split, key in origin.splits.items()}
    except Exception as error:  # the library does not catch those of its HTTP clients
        where = f"{name}: needs {origin.repo} from the Hugging Face hub, which could not be reached"
        line = where if source is None else f"{source / name}: cannot be read"
        advice = "--source DIR has a folder per task, the output of datasets' save_to_disk"
        raise DataError(f"{line}; {advice} ({type(error).__name__}: {error})") from error
    whole = [row for rows in hub.values() for row in rows]
    order, wanted = np.random.default_rng(0).permutation(len(whole)), sum(origin.sizes.values())
    dev, test = (round(len(whole) * origin.sizes[split] / wanted) for split in ("dev", "test"))
    parts = {"train": order[dev + test :], "dev": order[:dev], "test": order[dev : dev + test]}
    return {split: [whole[row] for row in np.sort(part)] for split, part in parts.items()}


def write(name: str, splits: Mapping[str, Rows], folder: Path) -> list[Path]:
    """Write the files of a task after a check that the task can read them; return their paths.

    Raise DataError for labels out of range.
    """
    task = build_task(name)
    source, files = files_of(task.source), []
    with TemporaryDirectory() as aside:
        for split, rows in splits.items():
            file = Path(source.where(Path(aside), split))
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = cs224n_lines if name in CS224N else glue_lines
            file.write_text(lines(name, source, split, rows), "utf-8", newline="")
            task.read(Path(aside), split)
            files.append(folder / file.relative_to(aside))
        shutil.copytree(aside, folder, dirs_exist_ok=True)
    return files


def cs224n_lines(name: str, source: LabelledFiles, split: str, rows: Rows) -> str:
    """Return tab-separated lines with an unnamed index before `id`; test has no labels."""
    labelled = split != "test"
    number = int if name == "sst" else float  # others' labels have a decimal point
    file = io.StringIO()
    writer = row_writer(file, "\t")
    header = ["", "id", *source.text_columns, *source.label_columns]
    writer.writerow(header if labelled else header[:-1])
    for place, (*texts, label) in enumerate(rows):
        key = hashlib.sha256(f"{split} {place} {texts}".encode()).hexdigest()[:25]
        if not isinstance(label, int | float):
            raise DataError(f"{name} {split}, row {place + 1}: expected a number, found {label!r}")
        writer.writerow([place, key, *texts, *([number(label)] if labelled else [])])
    return file.getvalue()


def glue_lines(name: str, source: LabelledFiles, split: str, rows: Rows) -> str:
    """Return lines in GLUE's own layout: tab-separated, without quotes."""
    labels = DATA_SETS[name].labels
    columns = (*source.text_columns, *source.label_columns)
    header = source.header or columns
    lines = [] if source.header else ["\t".join(header)]
    for *texts, label in rows:
        if label not in range(len(labels)):
            raise DataError(f"{name} {split}: expected the number of a class, found {label!r}")
        cells = [*(" ".join(text.split()) for text in texts), labels[label]]
        row = dict(zip(columns, cells, strict=True))
        lines.append("\t".join(row.get(column, "") for column in header))
    return "\n".join(lines) + "\n"
