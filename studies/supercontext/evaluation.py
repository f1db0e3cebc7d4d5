"""One seed of a cell: pre-training, linear evaluation and optional fine-tuning."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import digest
from minbert.words import build_bilstm
from multitask.config_tasks import training_texts
from multitask.control import RunControl
from multitask.run import complete
from multitask.runs import Run
from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from pretrain.probe import linear_evaluation


@dataclass(frozen=True)
class Words:
    """The shape of a BiLSTM."""

    layers: int
    units: int
    dropout: float

    def name(self, vectors: Vectors | None) -> str:
        """Return the encoder's name in configurations."""
        known = f"-{vectors.name}" if vectors else ""
        return f"bilstm-{self.layers}x{self.units}-dropout{self.dropout:g}{known}"


@dataclass(frozen=True)
class Vectors:
    """A file of word vectors, identified by its name and a digest of its content."""

    file: Path
    digest: str

    @classmethod
    def of(cls, file: Path) -> Vectors:
        """Return the vectors of a file; raise UserError if it cannot be read."""
        try:
            return cls(file, digest(file))
        except OSError as error:
            raise UserError(f"{file}: expected word vectors, found: {error}") from error

    @property
    def name(self) -> str:
        return f"{self.file.stem}-{self.digest[:8]}"


def pretrain_and_evaluate(
    config: RunConfig,
    folder: Path,
    words: Words | None,
    vectors: Vectors | None,
    fine_tuned_batch_size: int | None,
) -> dict[str, Any]:
    """Pre-train with `config`; return the figures of a linear evaluation and of fine-tuning.

    Fine-tuning uses cross-entropy with a new head for the same number of epochs and batches of
    `fine_tuned_batch_size`; None skips it.
    """
    begin = time.perf_counter()
    pretrained = pretrain(config, folder, words, vectors)
    after = changed_by_flags(
        config,
        mode="probe",
        encoder=str(Run(folder / "pretrained").weights()),
        objective=None,
        class_balanced=False,
    )
    linear, _ = linear_evaluation(after)
    kept = ("dev", "test")
    found = {
        "pretrained": {key: pretrained[key] for key in (*kept, "steps") if key in pretrained},
        "linear": {key: linear[key] for key in (*kept, "strength")},
    }
    if fine_tuned_batch_size is not None:
        fine_tuning = changed_by_flags(after, mode="single", batch_size=fine_tuned_batch_size)
        metrics = complete(fine_tuning, folder / "tuned", RunControl(resume=True))
        found["tuned"] = {key: metrics[key] for key in kept}
    return found | {
        "seconds": round(time.perf_counter() - begin, 1),
        "environment": pretrained["environment"],
    }


def pretrain(
    config: RunConfig, folder: Path, words: Words | None, vectors: Vectors | None
) -> dict[str, Any]:
    """Complete the run in the folder's `pretrained` and return its metrics.

    A BiLSTM starts with the vocabulary of the training examples and, if given, with `vectors`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if words is not None:
        encoder = folder / "words"
        if not encoder.exists():
            made = build_bilstm(
                encoder,
                training_texts(config),
                vectors.file if vectors else None,
                units=words.units,
                num_layers=words.layers,
                dropout=words.dropout,
                pooling=config.pooling or "mean",
                seed=config.seed,
            )
            print(made, flush=True)
        config = changed_by_flags(config, encoder=str(encoder))
    return complete(config, folder / "pretrained", RunControl(resume=True))
