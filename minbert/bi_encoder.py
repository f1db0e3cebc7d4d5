"""The Siamese encoder: sentences -> embeddings, for training (`embed`) and for use (`encode`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from minbert.batching import Batch, pack, sorted_batches
from minbert.config import config_from_transformers, config_to_transformers
from minbert.encoder import Encoder, random_encoder
from minbert.errors import EncoderError
from minbert.folder import SentenceSettings, read_sentence_settings, write_sentence_settings
from minbert.json_files import read_json, write_json
from minbert.pooling import POOLINGS
from minbert.sources import find_folder
from minbert.tokenizer import Tokenizer, load_tokenizer
from minbert.weights import load_encoder, save_encoder

PRECISIONS = ("fp32", "bf16")
ENCODE_BATCH = 64


class BiEncoder(nn.Module):
    """One encoder for every sentence, and a pooling (Reimers and Gurevych, 2019).

    Example:
        >>> model = BiEncoder.from_pretrained("minilm")
        >>> model.encode(["A cat sleeps.", "Ein Hund bellt."], normalize=True).shape
        (2, 384)
    """

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        pooling: str = "mean",
        normalize: bool = False,
        skipped_tensors: Sequence[str] = (),
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise EncoderError(f"pooling: expected one of {', '.join(POOLINGS)}, found {pooling!r}")
        self.encoder, self.tokenizer = encoder, tokenizer
        self.pooling, self.normalize = pooling, normalize
        self.skipped_tensors = tuple(skipped_tensors)

    @classmethod
    def from_pretrained(cls, name_or_path: str | Path, pooling: str | None = None) -> BiEncoder:
        """Load a named encoder, a local folder or a hub id.

        Args:
            name_or_path: `minilm`, `bert-base-uncased`, `roberta-base`, `tiny`; a folder in the
                layout of transformers or sentence-transformers, or one that `save_pretrained`
                wrote; a hub id `owner/name`.
            pooling: `mean`, `cls` or `max`; None for what the folder says, else `mean`.

        Returns the model in evaluation mode, as transformers does.

        Raises:
            EncoderError: one line, naming the file or tensor that is wrong.
        """
        folder = find_folder(str(name_or_path))
        content = read_json(folder / "config.json")
        try:
            config = config_from_transformers(content)
        except EncoderError as error:
            raise EncoderError(f"{folder / 'config.json'}: {error}") from error
        said = read_sentence_settings(folder)
        max_tokens = min(said.max_tokens or config.max_tokens, config.max_tokens)
        tokenizer = load_tokenizer(folder, config.family, max_tokens, said.lower)
        if tokenizer.vocab_size > config.vocab_size:
            raise EncoderError(
                f"{folder}: expected at most {config.vocab_size} tokens (config.json), "
                f"found a tokenizer with {tokenizer.vocab_size}"
            )
        skipped: list[str] = []
        if str(name_or_path) == "tiny":
            encoder = random_encoder(config)
        else:
            encoder, skipped = load_encoder(folder, config)
        pooling = pooling or said.pooling or "mean"
        return cls(encoder, tokenizer, pooling, said.normalize, skipped).eval()

    @property
    def width(self) -> int:
        """H, the size of an embedding."""
        return self.encoder.config.hidden_size

    @property
    def device(self) -> torch.device:
        return self.encoder.embeddings.word.weight.device

    def embed(self, batch: Batch) -> Tensor:
        """Sequences -> float32 embeddings (S, H), differentiable, never normalised."""
        batch = batch.to(self.device)
        hidden = self.encoder(batch)  # (T, H)
        return POOLINGS[self.pooling](hidden.float(), batch)

    def encode(
        self,
        sentences: Sequence[str],
        precision: str = "fp32",
        normalize: bool | None = None,
        progress: bool = False,
    ) -> np.ndarray:
        """Sentences -> `numpy.float32 (n, H)`, in their order; an empty list gives (0, H).

        Args:
            precision: `fp32`, or `bf16` for bfloat16 matrix products.
            normalize: unit length; None for what the encoder's folder says, else not.
            progress: show a bar with sentences/s.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences: expected a list of strings, found one string")
        if precision not in PRECISIONS:
            raise ValueError(
                f"precision: expected one of {', '.join(PRECISIONS)}, found {precision!r}"
            )
        tokens = self.tokenizer(sentences)
        result = np.zeros((len(tokens), self.width), np.float32)
        training = self.training
        self.eval()
        try:
            with (
                torch.inference_mode(),
                autocast(self.device, precision),
                bar(len(tokens), progress) as done,
            ):
                for rows in sorted_batches(tokens.lengths, ENCODE_BATCH):
                    result[rows] = self.embed(pack([tokens], rows)).cpu().numpy()
                    done.update(len(rows))
        finally:
            self.train(training)
        if self.normalize if normalize is None else normalize:
            result /= np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-12)
        return result

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder that transformers, sentence-transformers and `from_pretrained` open."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "config.json", config_to_transformers(self.encoder.config))
        save_encoder(self.encoder, folder)
        self.tokenizer.save(folder)
        write_sentence_settings(
            folder,
            SentenceSettings(
                self.pooling, self.normalize, self.tokenizer.max_tokens, self.tokenizer.lower
            ),
            self.width,
        )


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bfloat16 matrix products for `bf16`, nothing for `fp32`; weights stay float32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def bar(total: int, shown: bool) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, unit="sentence", desc="encode", disable=not shown)
