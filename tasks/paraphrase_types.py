"""The types of a paraphrase, several per pair (ETPC, Kovatchev et al., 2018), in Göttingen's files.

The files of the course M.Inf.2202 have two versions. Since 2025: the types 1 to 31 of the corpus
without five unused ones, in `paraphrase_type_ids`, with commas. In 2024: seven groups of types, in
`paraphrase_types`, with tabs. Both have a list such as `[2, 29, 29]` per pair, where 0 fills up.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tasks.base import Task
from tasks.heads import PairClassifier
from tasks.kinds import multi_label
from tasks.labelled_files import LabelledFiles
from tasks.predictions import PredictionFile
from tasks.readers import Examples, Limit, clean_pair_text
from tasks.splits import PartedSource

UNUSED = (12, 19, 20, 23, 27)
# By number of types: the types, the column of the labels, the mark between fields of predictions.
VERSIONS: dict[str, tuple[tuple[int, ...], str, str]] = {
    "26": (tuple(n for n in range(1, 32) if n not in UNUSED), "paraphrase_type_ids", ","),
    "7": (tuple(range(1, 8)), "paraphrase_types", "\t"),
}


@dataclass(frozen=True)
class WithOptionalDev:
    """Files of which dev may be missing, as in the course: then a tenth of train is dev."""

    source: LabelledFiles
    splits: tuple[str, ...] = ("train", "dev", "test")

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        return self.of(folder).read(folder, split, limit)

    def where(self, folder: Path, split: str) -> str:
        return self.of(folder).where(folder, split)

    def of(self, folder: Path) -> LabelledFiles | PartedSource:
        has_dev = self.source.file(folder, "dev").exists()
        return self.source if has_dev else PartedSource(self.source)


def label_list(types: tuple[int, ...]) -> Callable[[str], tuple[float, ...]]:
    """Return a parser of a list of types to 1 for each type in it and 0 for the others."""

    def parse(label: str) -> tuple[float, ...]:
        try:
            found = json.loads(label)
        except ValueError:
            found = None
        if not isinstance(found, list) or any(one not in (0, *types) for one in found):
            raise ValueError(f"expected a list of types from 1 to {types[-1]}, such as [2, 5]")
        return tuple(float(one in found) for one in types)

    return parse


def etpc(types: str) -> Task:
    """Return paraphrase types with BEES' head for pairs (M5) and a sigmoid per type."""
    numbers, column, separator = VERSIONS[types]
    files = {"train": "train", "dev": "dev", "test": "detection-test-student"}
    return Task(
        name="etpc",
        kind=multi_label(len(numbers), tuple(f"type {number}" for number in numbers)),
        source=WithOptionalDev(
            LabelledFiles(
                files={split: f"etpc-paraphrase-{name}.csv" for split, name in files.items()},
                text_columns=("sentence1", "sentence2"),
                label_columns=(column,),
                parse_label=label_list(numbers),
                clean_text=clean_pair_text,
                target_type=np.float32,
            )
        ),
        build_head=partial(PairClassifier, classes=len(numbers), difference=True),
        output=PredictionFile(
            "etpc-paraphrase-detection",
            "Predicted_Paraphrase_Types",
            show=lambda values: str([int(value) for value in values]),
            separator=separator,
        ),
        texts=2,
    )
