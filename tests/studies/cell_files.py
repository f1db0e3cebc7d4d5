"""Cells of invented figures, as a study keeps them, and data of a few words."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from common.files import write_json

FORMS = {  # header, and a row
    "SST-2": ("sentence\tlabel\n", "a {word} film {n}\t{label}\n"),
    "RTE": ("sentence1\tsentence2\tlabel\n", "a {word} film {n}\tthe {word} {n}\t{name}\n"),
    "CoLA": ("", "x\t{label}\t\ta {word} film {n}\n"),
    "MRPC": ("Quality\t#1 String\t#2 String\n", "{label}\ta {word} film {n}\tthe {word} {n}\n"),
}


def keep_seeds(file: Path, config: Mapping[str, Any], seeds: Mapping[str, Any]) -> None:
    """The cell of several seeds."""
    write_json(file, {"config": dict(config), "seeds": dict(seeds)})


def write_times(results: Path) -> dict[Path, int]:
    """When each kept cell was written."""
    return {path: path.stat().st_mtime_ns for path in results.glob("*.json")}


def few_words(
    folder: Path, *sets: str, train: int, dev: int, label: Callable[[int], int] = lambda i: i % 2
) -> Path:
    """Sets of GLUE in a folder, of a few words; a word shows the class."""
    for name in sets:
        header, row = FORMS[name]
        (folder / name).mkdir(parents=True)
        for file, count in (("train.tsv", train), ("dev.tsv", dev)):
            text = header
            for i in range(count):
                one = label(i)
                names = {
                    "word": ("bad", "good")[one],
                    "name": ("entailment", "not_entailment")[one],
                }
                text += row.format(label=one, n=f"{i} {file}", **names)
            (folder / name / file).write_text(text)
    return folder
