"""Data of the Hugging Face hub as the files of CS224N and GLUE; origins.toml says where it is.

CS224N's own splits of Quora and STS are random; those written here are other random splits of the
same data, of the same sizes and always the same.
"""

from __future__ import annotations

import csv
import hashlib
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from tasks import DATA_SETS, build_task
from tasks.readers import LabelledFiles, files_of
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
            write_rows(file, name, source, rows, labelled=split != "test")
            task.read(Path(aside), split)
            files.append(folder / file.relative_to(aside))
        shutil.copytree(aside, folder, dirs_exist_ok=True)
    return files


def write_rows(file: Path, name: str, source: LabelledFiles, rows: Rows, labelled: bool) -> None:
    """Write a tab-separated file with the columns of a task, without quotes if it has none.

    The ids are checksums, if the task has ids. Line breaks, tabs and other spaces become one space.
    """
    columns = [*source.text_columns, *(source.label_columns if labelled else ())]
    header = source.header or [*filter(None, [source.id_column]), *columns]
    mark, quoting = ('"', csv.QUOTE_MINIMAL) if source.quoted else (None, csv.QUOTE_NONE)
    style: Any = {"delimiter": "\t", "quotechar": mark, "quoting": quoting, "lineterminator": "\n"}
    labels = DATA_SETS[name].labels if name in DATA_SETS else None
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, header, "", "ignore", **style)
        if source.header is None:
            writer.writeheader()
        for place, (*texts, label) in enumerate(rows):
            if labels is not None and label not in range(len(labels)):
                line = f"expected the number of a class, found {label!r}"
                raise DataError(f"{name}, row {place + 1}: {line}")
            cells = [" ".join(text.split()) for text in texts]
            cells.append(labels[label] if labels else label)
            key = hashlib.sha256(f"{file.name} {place} {texts}".encode()).hexdigest()[:25]
            writer.writerow({"id": key, **dict(zip(columns, cells, strict=False))})
