"""Conversion of data from the Hugging Face hub to the files of CS224N and GLUE.

Splits have CS224N's sizes. CS224N's own splits of Quora and STS are random; those written here are
other random splits of the same data, of the same sizes and always the same.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from common.csv_rows import row_writer
from common.files import atomic_write_text, check_regular
from tasks import CS224N, build_task
from tasks.catalog import GLUE
from tasks.labelled_files import LabelledFiles
from tasks.text_files import DataError

Rows = Mapping[str, Sequence[Any]]  # columns of one split
Splits = Mapping[str, Rows]


@dataclass(frozen=True)
class Origin:
    """Location of a task's data on the hub: `repo` and `config`, columns of texts and label."""

    repo: str
    config: str | None
    texts: tuple[str, ...]
    label: str
    sizes: Mapping[str, int]  # rows per split


ORIGINS = {
    "sst": Origin(
        "SetFit/sst5", None, ("text",), "label", {"train": 8544, "dev": 1101, "test": 2210}
    ),
    "qqp": Origin(
        "sentence-transformers/quora-duplicates",
        "pair-class",
        ("sentence1", "sentence2"),
        "label",
        {"train": 283_002, "dev": 40_429, "test": 80_859},
    ),
    "sts": Origin(
        "mteb/stsbenchmark-sts",
        None,
        ("sentence1", "sentence2"),
        "score",
        {"train": 6040, "dev": 863, "test": 1725},
    ),
}
GLUE_SIZES = {  # rows of train and dev
    "sst2": (67_349, 872),
    "cola": (8551, 1043),
    "mrpc": (3668, 408),
    "rte": (2490, 277),
    "qnli": (104_743, 5463),
    "mnli": (392_702, 9815),
}
COLUMNS = {  # text columns of GLUE on the hub
    "sst2": ("sentence",),
    "cola": ("sentence",),
    "qnli": ("question", "sentence"),
    "mnli": ("premise", "hypothesis"),
}
ORIGINS |= {
    name: Origin(
        "nyu-mll/glue",
        name,
        COLUMNS.get(name, ("sentence1", "sentence2")),
        "label",
        {"train": train, "dev": dev},
    )
    for name, (train, dev) in GLUE_SIZES.items()
}


def fetch(name: str, source: Path | None, revision: str | None = None) -> Splits:
    """Return the splits of a task from the hub, or from `source`, saved by the library datasets.

    Raises DataError in one line, which says what to do without a network.
    """
    origin = ORIGINS[name]
    import datasets

    for file in (source / name).rglob("*") if source is not None else ():
        if not file.is_dir():
            check_regular(file, DataError)
    try:
        if source is not None:
            return dict(datasets.load_from_disk(str(source / name)))
        return dict(datasets.load_dataset(origin.repo, origin.config, revision=revision))
    except Exception as error:  # the library does not catch those of its HTTP clients
        if source is not None:
            where = "expected the output of datasets' save_to_disk"
        else:
            where = (
                f"needs {origin.repo} from the Hugging Face hub, which could not be "
                "reached: expected a network, or --source DIR with the output of datasets' "
                "save_to_disk, one folder per task; the bundled sample needs neither"
            )
        raise DataError(f"{where} ({type(error).__name__})") from error


def to_task_splits(name: str, found: Splits) -> dict[str, Rows]:
    """Return train, dev and test as in CS224N and GLUE."""
    origin = ORIGINS[name]
    if name in ("qqp", "sts"):
        return shuffled(origin, found)
    dev = "validation_matched" if name == "mnli" else "validation"
    wanted = {"train": "train", "dev": dev} | ({"test": "test"} if name == "sst" else {})
    for key in wanted.values():
        if key not in found:
            raise DataError(f"{name}: expected a split {key}, found {', '.join(found)}")
    return {split: columns(origin, found[key], key) for split, key in wanted.items()}


def shuffled(origin: Origin, splits: Splits) -> dict[str, Rows]:
    """Shuffle all rows, always in the same way, and split them in proportion to the sizes."""
    every = [columns(origin, one, name) for name, one in splits.items()]
    names = (*origin.texts, origin.label)
    whole = {name: [value for one in every for value in one[name]] for name in names}
    count, wanted = len(whole[origin.label]), sum(origin.sizes.values())
    order = np.random.default_rng(0).permutation(count)
    dev = round(count * origin.sizes["dev"] / wanted)
    test = round(count * origin.sizes["test"] / wanted)
    rows = {"dev": order[:dev], "test": order[dev : dev + test], "train": order[dev + test :]}
    return {
        split: {name: [whole[name][row] for row in np.sort(rows[split])] for name in names}
        for split in ("train", "dev", "test")
    }


def columns(origin: Origin, rows: Any, split: str) -> Rows:
    """Return texts and labels of one split as lists; raise DataError for other or blank values."""
    found = {}
    for name in (*origin.texts, origin.label):
        if name not in rows.column_names:
            names = ", ".join(rows.column_names)
            raise DataError(f"split {split}: expected a column {name}, found {names}")
        found[name] = list(rows[name])
        kind, what = (int | float, "a number") if name == origin.label else (str, "text")
        for number, value in enumerate(found[name], 1):
            if not isinstance(value, kind) or (kind is str and not str(value).strip()):
                raise DataError(
                    f"split {split}, row {number}: expected {what} in {name}, found {value!r}"
                )
    return found


def write(name: str, splits: Mapping[str, Rows], folder: Path) -> list[Path]:
    """Write the files of a task, each atomically, after a check that the task can read them.

    Raises DataError for labels out of range, and for splits without examples.
    """
    files = cs224n_files(name, splits) if name in CS224N else glue_files(name, splits)

    def put(place: Path) -> None:
        for file, text in files.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            atomic_write_text(place / file, text)

    task = build_task(name)
    with TemporaryDirectory() as aside:
        put(Path(aside))
        for split in task.source.splits:
            task.read(Path(aside), split)
    put(folder)
    return [folder / file for file in files]


def cs224n_files(name: str, splits: Mapping[str, Rows]) -> dict[str, str]:
    """Return tab-separated files with an unnamed index before `id`; test has no labels."""
    declared, origin, files = build_task(name).source, ORIGINS[name], {}
    assert isinstance(declared, LabelledFiles)
    number_type = int if name == "sst" else float  # others' labels have a decimal point
    for split, rows in splits.items():
        labelled = split != "test"
        lines: list[list[object]] = [["", "id", *declared.text_columns]]
        lines[0] += [declared.label_column] if labelled else []
        for number, row in enumerate(zip(*rows.values(), strict=True)):
            fields = dict(zip(rows, row, strict=True))
            words = [fields[text] for text in origin.texts]
            key = hashlib.sha256(f"{split} {number} {words}".encode()).hexdigest()[:25]
            label = [str(number_type(fields[origin.label]))] if labelled else []
            lines.append([number, key, *words, *label])
        files[declared.files[split]] = tab_separated(lines)
    return files


def glue_files(name: str, splits: Mapping[str, Rows]) -> dict[str, str]:
    """Return files in GLUE's own layouts: tab-separated, without quotes."""
    declared, origin, files = GLUE[name], ORIGINS[name], {}
    header = declared.header or (*declared.texts, declared.label)
    for split, rows in splits.items():
        lines = [] if declared.header else ["\t".join(header)]
        for row in zip(*rows.values(), strict=True):
            fields = dict(zip(rows, row, strict=True))
            values = dict.fromkeys(header, "")
            values |= {
                own: " ".join(str(fields[theirs]).split())
                for own, theirs in zip(declared.texts, origin.texts, strict=True)
            }
            label = int(fields[origin.label])
            if label not in range(len(declared.labels)):
                raise DataError(f"{name}, {split}: expected the number of a class, found {label}")
            values[declared.label] = declared.labels[label]
            lines.append("\t".join(values[column] for column in header))
        file = declared.train if split == "train" else declared.dev
        files[f"glue/{declared.folder}/{file}"] = "\n".join(lines) + "\n"
    return files


def tab_separated(lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    row_writer(text, "\t").writerows(lines)
    return text.getvalue()
