"""The objectives of pre-training on texts and pairs, and the base class of all of them.

`pretrain_tasks.py` makes tasks of the objectives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from common.errors import UserError
from common.later import Tensor
from common.settings import Name, Positive, setting
from losses import simcse_loss, triplet_margin_loss
from losses.objectives import TEMPERATURE, TEMPERATURE_HELP, PretrainObjective
from pretrain.texts import Texts, read_nli_triplets
from tasks.base import Embeddings

TEXT = (
    "file of texts, instead of those of tasks: one sentence per line, or a .csv, .tsv, .jsonl or "
    ".parquet file with --text-column"
)
COLUMN = "column or field of --text; two of them for pairs, such as question and answer"
PROJECT = "put a layer between embeddings and objective, in training only (SimCSE's MLP)"


class TextObjective(PretrainObjective):
    """An objective about texts, without classes; `config` is the `RunConfig` of the run."""

    projection: bool = setting(False, help=PROJECT)

    def loss(self, texts: Embeddings, groups: Tensor) -> Tensor:
        """Return the loss of a batch; texts of one group are not negatives of each other."""
        raise UserError(f"objective {self.name}: expected loss")

    def source(self, config: Any) -> Texts:
        """Return the texts to train on."""
        raise UserError(f"objective {self.name}: expected source")

    @property
    def adds_layer(self) -> bool:
        return self.projection


class FileObjective(TextObjective):
    """An objective about texts, without classes, of tasks or of a file instead."""

    text: Name | None = setting(None, help=TEXT, metavar="FILE")
    text_column: tuple[Name, ...] = setting((), help=COLUMN, metavar="NAME")

    @property
    def file(self) -> str | None:
        return self.text

    def faults(self) -> Iterator[str]:
        if self.text_column and self.text is None:
            yield "text_column: needs text, the file of this column"
        if len(self.text_column) > (2 if self.of_pairs else 1):
            yield f"text_column: too many for objective {self.name}: {', '.join(self.text_column)}"


class PairObjective(FileObjective):
    """An objective about texts that belong together, perhaps with others that do not."""

    of_pairs = True
    random_negatives: ClassVar[bool] = False  # whether each pair has a third text from elsewhere

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.text is not None and len({*self.text_column}) != 2:
            yield f"text_column: objective {self.name} needs two, such as question and answer"

    def source(self, config: Any) -> Texts:
        from pretrain.pretrain_tasks import pair_source

        return pair_source(self, config)


class ContrastiveObjective(TextObjective):
    """An objective in which each text finds the one that belongs to it, by SimCSE's loss."""

    contrast_temperature: Positive = setting(TEMPERATURE, **TEMPERATURE_HELP)

    def loss(self, texts: Embeddings, groups: Tensor) -> Tensor:
        """Return SimCSE's loss; other pairs of the batch, and any third text, are negatives."""
        third = texts[2] if len(texts) > 2 else None
        own, other = groups.unbind(1) if groups.ndim == 2 else (groups, None)
        return simcse_loss(texts[0], texts[1], self.contrast_temperature, third, own, other)


class SimCSE(ContrastiveObjective, FileObjective, name="simcse"):
    """Each sentence finds its other view, which dropout makes, in the batch (Gao et al., 2021)."""

    def source(self, config: Any) -> Texts:
        from pretrain.pretrain_tasks import sentence_source

        return sentence_source(self, config)


class NLI(ContrastiveObjective, name="nli"):
    """Each premise finds what follows from it; what contradicts it is a hard negative."""

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
            yield "nli: expected a file with objective nli, found none"


class Pairs(ContrastiveObjective, PairObjective, name="pairs"):
    """Each text finds the one that belongs to it (Quora duplicates, STS from 4 on, --text)."""


class Ranking(Pairs, name="ranking"):
    """As pairs, with sentences from elsewhere as further negatives."""

    random_negatives = True


class Triplet(PairObjective, name="triplet"):
    """A text is nearer to the one that belongs to it than to one from elsewhere, by a margin."""

    compares_examples, random_negatives = False, True
    margin: Positive = setting(0.5, help="margin in cosines", source="our choice")

    def loss(self, texts: Embeddings, groups: Tensor) -> Tensor:
        return triplet_margin_loss(texts[0], texts[1], texts[2], self.margin)
