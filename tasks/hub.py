"""Data of the Hugging Face hub as the files of CS224N and GLUE; origins.toml says where it is.

The random splits of Quora and STS are others than CS224N's, of the same sizes.
"""

import csv
import hashlib
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tasks.built_in import DATA_SETS, build_task
from tasks.readers import files_of
from tasks.tables import DataError

ORIGINS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("origins.toml").read_text("utf-8")
)


def fetch(name: str, source: Path | None) -> dict[str, Any]:
    """Return the rows of train, dev and test, from the hub, or from `source/NAME` on disk."""
    import datasets

    origin = ORIGINS[name]
    try:
        if source is None:
            found = datasets.load_dataset(origin["repo"], origin.get("config"))
        else:
            found = datasets.load_from_disk(str(source / name))
        found = found.select_columns([*origin["texts"], origin["label"]])
        if "splits" in origin:
            return {split: found[key] for split, key in origin["splits"].items()}
        whole = datasets.concatenate_datasets([*found.values()])
    except Exception as error:  # the library does not catch those of its HTTP clients
        line = f"{name}: {origin['repo']} could not be {'read' if source else 'reached'}"
        advice = "--source DIR needs a folder per task, written by datasets' save_to_disk"
        raise DataError(f"{line}; {advice} ({type(error).__name__}: {error})") from error
    order, wanted = np.random.default_rng(0).permutation(len(whole)), sum(origin["sizes"].values())
    dev, test = (round(len(whole) * origin["sizes"][n] / wanted) for n in ("dev", "test"))
    parts = dict(zip(("dev", "test", "train"), np.split(order, [dev, dev + test]), strict=True))
    return {split: whole.select(np.sort(parts[split])) for split in origin["sizes"]}


def write(name: str, splits: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the files of a task after a check that the task can read them; return their paths."""
    import pandas

    task, origin = build_task(name), ORIGINS[name]
    source, files = files_of(task.source), []
    header, plain = source.layout.header, source.layout.quotes is False
    quoting = csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL
    names = dict(enumerate(DATA_SETS[name].labels)) if name in DATA_SETS else {}
    with TemporaryDirectory() as aside:
        for split, rows in splits.items():
            file = Path(source.where(Path(aside), split))
            file.parent.mkdir(parents=True, exist_ok=True)
            texts = [rows[text] for text in origin["texts"]]
            keys = [f"{file.name} {n} {[*row]}" for n, row in enumerate(zip(*texts, strict=True))]
            found = {"id": [hashlib.sha256(key.encode()).hexdigest()[:25] for key in keys]}
            for column, several in zip(source.text_columns, texts, strict=True):
                found[column] = [" ".join(text.split()) for text in several]
            for column in source.label_columns if split != "test" else ():
                labels = rows[origin["label"]]
                found[column] = [names.get(n, f"class {n}") if names else n for n in labels]
            columns = [*found][source.id_column is None :] if header is True else header
            frame = pandas.DataFrame(found, columns=columns)
            frame.to_csv(file, sep="\t", header=header is True, index=False, quoting=quoting)
            task.read(Path(aside), split)
            files.append(folder / file.relative_to(aside))
        shutil.copytree(aside, folder, dirs_exist_ok=True)
    return files
