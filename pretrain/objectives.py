"""The objectives of pre-training on texts and pairs; those of classes are beside their losses.

`pretrain_tasks.py` makes tasks of the objectives.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.later import Tensor
from common.settings import Name, Positive, setting
from losses import simcse_loss
from losses.objectives import TEMPERATURE, TEMPERATURE_HELP, PretrainObjective
from pretrain.texts import Texts, file_texts, positive_pairs, read_nli_triplets, sentences
from tasks.base import Embeddings

FILE = (
    "file of texts, instead of those of tasks: one sentence per line, or a .csv, .tsv, .jsonl or "
    ".parquet file with --text"
)
COLUMN = "column or field of --data-file; two of them for pairs, such as question and answer"
PROJECT = "put a layer between embeddings and objective, in training only (SimCSE's MLP)"


class TextObjective(PretrainObjective):
    """An objective in which each text finds the one that belongs to it, without classes."""

    projection: bool = setting(False, help=PROJECT, flag=False)
    contrast_temperature: Positive = setting(TEMPERATURE, **TEMPERATURE_HELP, flag=False)

    def loss(self, texts: Embeddings, groups: Tensor) -> Tensor:
        """Return SimCSE's loss; other pairs of the batch, and any third text, are negatives.

        Texts of one group are not negatives of each other.
        """
        third = texts[2] if len(texts) > 2 else None
        own, other = groups.unbind(1) if groups.ndim == 2 else (groups, None)
        return simcse_loss(texts[0], texts[1], self.contrast_temperature, third, own, other)

    def source(self, config: Any) -> Texts:
        """Return the texts to train on; `config` is the `RunConfig` of the run."""
        raise UserError(f"objective {self.name}: the class needs a method source")


class FileObjective(TextObjective):
    """An objective about the texts of tasks, or of a file instead."""

    data_file: Name | None = setting(None, help=FILE, metavar="FILE", common=True)
    text: tuple[Name, ...] = setting((), help=COLUMN, metavar="COLUMN")

    @property
    def file(self) -> str | None:
        return self.data_file

    def faults(self) -> Iterator[str]:
        if self.text and self.data_file is None:
            yield "text: needs data_file, the file with this column"
        elif len(self.text) > (2 if self.of_pairs else 1):
            yield f"text: too many columns for objective {self.name}: {', '.join(self.text)}"
        elif self.of_pairs and self.data_file is not None and len({*self.text}) != 2:
            yield f"text: objective {self.name} needs two columns, such as question and answer"

    def source(self, config: Any) -> Texts:
        if self.data_file is not None:
            return Texts(partial(file_texts, self.data_file, self.text), self.data_file)
        origin = f"the training files of {', '.join(config.tasks)}"
        if self.of_pairs:
            return Texts(partial(positive_pairs, config.tasks), origin)
        tasks = [one.build() for one in config.tasks.values()]
        return Texts(partial(sentences, tasks), origin)


class SimCSE(FileObjective, name="simcse"):
    """Match two views of each sentence, which differ by dropout (Gao et al., 2021)."""


class Pairs(FileObjective, name="pairs"):
    """Match the two texts of a pair (Quora duplicates, STS pairs from 4 on, columns of --text)."""

    of_pairs = True


class NLI(TextObjective, name="nli"):
    """Match each premise with an entailed sentence; a contradicting one is a hard negative."""

    needs_file = True
    nli: Name | None = setting(
        None,
        metavar="FILE",
        help="CSV or TSV file with columns sent0, sent1, hard_neg, or sentence1, sentence2, "
        "gold_label (entailment, neutral, contradiction)",
    )

    def source(self, config: Any) -> Texts:
        return Texts(lambda _, limit: read_nli_triplets(Path(self.nli or ""), limit), str(self.nli))

    @property
    def file(self) -> str | None:
        return self.nli

    def faults(self) -> Iterator[str]:
        if self.nli is None:
            yield "nli: objective nli needs this file"
