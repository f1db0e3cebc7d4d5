"""The Siamese encoder of sentences, for training (`embed`) and for inference (`encode`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import EncoderError
from common.progress import bar
from minbert.batching import Batch, TokenLists, pack, sorted_batches, to_device
from minbert.bilstm import BiLSTM
from minbert.config import EncoderConfig
from minbert.encoder import random_encoder
from minbert.folder import (
    AnyEncoder,
    SentenceSettings,
    load_encoder,
    make_folder,
    read_config,
    read_sentence_settings,
    save_encoder,
    tokenizer_of,
    write_sentence_settings,
)
from minbert.pooling import POOLINGS, Pool
from minbert.precision import PrecisionChoice, autocast, choose_precision
from minbert.sentences import characters, check_column, check_texts, windows
from minbert.sources import find_folder
from minbert.threads import in_threads
from minbert.tokenizer import Tokenizer, warn_of_truncation


class BiEncoder(nn.Module):
    """Sentence encoder: one shared encoder and a pooling (Reimers and Gurevych, 2019).

    Example:
        >>> model = BiEncoder.from_pretrained("minilm")
        >>> model.encode(["A cat sleeps.", "Ein Hund bellt."], normalize=True).shape
        (2, 384)
    """

    def __init__(
        self,
        encoder: AnyEncoder,
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
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        pooling: str | None = None,
        max_tokens: int | None = None,
    ) -> BiEncoder:
        """Load a named encoder, a local folder or a hub id, in evaluation mode.

        Args:
            name_or_path: `minilm`, `bert-base-uncased`, `roberta-base`, `tiny`; a folder in the
                layout of transformers or sentence-transformers, or one that `save_pretrained` or
                `build_bilstm` wrote; a hub id `owner/name`.
            pooling: `mean`, `cls` or `max`; None for the folder's pooling, else `mean`.
            max_tokens: limit of a text, special tokens included; None for that of the folder.

        Raises:
            EncoderError: with one line that names the invalid file or tensor.
        """
        folder = find_folder(str(name_or_path))
        config = read_config(folder)
        settings = read_sentence_settings(folder)
        tokenizer = tokenizer_of(folder, config, settings, max_tokens)
        encoder: AnyEncoder
        skipped: list[str]
        if str(name_or_path) == "tiny" and isinstance(config, EncoderConfig):
            encoder, skipped = random_encoder(config), []
        else:
            encoder, skipped = load_encoder(folder, config)
        pooling = pooling or settings.pooling or "mean"
        return cls(encoder, tokenizer, pooling, settings.normalize, skipped).eval()

    @property
    def width(self) -> int:
        """H, the width of an embedding."""
        return self.encoder.config.hidden_size

    @property
    def sentence_settings(self) -> SentenceSettings:
        """Pooling, normalisation, limit of tokens, and whether texts are lower-cased first."""
        reading = self.tokenizer.max_tokens, self.tokenizer.lower
        return SentenceSettings(self.pooling, self.normalize, *reading)

    @property
    def device(self) -> torch.device:
        return self.encoder.embeddings.word.weight.device

    def embed(self, batch: Batch, pool: Pool | None = None) -> Tensor:
        """Return float32 embeddings (S, H) of the sequences, differentiable, never normalised.

        `pool` replaces the model's pooling and determines the width.
        """
        batch = batch.to(self.device)
        hidden = self.encoder(batch).float()  # (T, H)
        with torch.autocast(self.device.type, enabled=False):
            return (pool or POOLINGS[self.pooling])(hidden, batch)

    def with_encoder(self, encoder: AnyEncoder) -> BiEncoder:
        """Return a model with another encoder of the same width, and the settings of this one."""
        sentence = self.tokenizer, self.pooling, self.normalize, self.skipped_tensors
        return BiEncoder(encoder, *sentence)

    def encode(
        self,
        sentences: Iterable[str],
        precision: str = "fp32",
        normalize: bool | None = None,
        progress: bool = False,
    ) -> np.ndarray:
        """Encode sentences as `numpy.float32 (n, H)`, in order; an empty list gives (0, H).

        Args:
            sentences: a list, a column of pandas, an array or other strings in an order.
            precision: `fp32`, or `bf16` for matrix products in bfloat16; `auto` is bf16 where the
                device has bfloat16 instructions, else fp32.
            normalize: whether to scale to unit length; None for the setting of the model's folder.
            progress: whether to show a progress bar with sentences/s.

        Raises:
            TypeError: for a value that is not a string, such as None or NaN, with its index.
            SettingsError: for another precision, and for bf16 with a BiLSTM.

        Warns:
            common.errors.Notice: with the number of sentences that were cut to
                `tokenizer.max_tokens`.
        """
        check_column(sentences)
        sentences = list(sentences)
        result = np.empty((len(sentences), self.width), np.float32)
        done, total = 0, len(sentences) if progress else None
        for window in self.encode_stream(sentences, precision, normalize, total):
            result[done : done + len(window)] = window
            done += len(window)
        return result

    def encode_stream(
        self,
        sentences: Iterable[str],
        precision: str = "fp32",
        normalize: bool | None = None,
        total: int | None = None,
    ) -> Iterator[np.ndarray]:
        """Encode text of any size like `encode`; yield the embeddings (n, H) of each window.

        A window is a few thousand sentences in order; only one is held in memory. `total`, the
        number of sentences, enables a progress bar. Warns like `encode`, after the last window.
        """
        check_column(sentences)
        normalize = self.normalize if normalize is None else normalize
        done, cut = 0, 0
        with bar("encode", "sentence", total) as progress:
            for texts in windows(sentences, WINDOW, lambda text: characters([text])):
                check_texts(texts, done)
                tokens = self.tokenizer(texts)
                done, cut = done + len(texts), cut + int(tokens.truncated.sum())
                yield self.encode_window(
                    tokens, precision, normalize=normalize, count=progress.update
                )
        warn_of_truncation(cut, done, "sentences", self.tokenizer.max_tokens)

    def choose_precision(self, precision: str) -> PrecisionChoice:
        """Return the precision for `auto` on the model's device, or the requested one."""
        return choose_precision(precision, self.device, isinstance(self.encoder, BiLSTM))

    @torch.inference_mode()
    def encode_window(
        self,
        tokens: TokenLists,
        precision: str = "fp32",
        *,
        normalize: bool = False,
        count: Callable[[int], object] | None = None,
        pool: Pool | None = None,
        width: int | None = None,
    ) -> np.ndarray:
        """Encode the tokens of n sentences as `numpy.float32 (n, H)`, in order.

        `count` is called with the number of sentences of each pass, for a progress bar. `pool`,
        with this output `width`, replaces the model's pooling. Raise EncoderError for embeddings
        that are not finite.
        """
        precision = self.choose_precision(precision).precision
        size = len(tokens), width or self.width
        result = torch.empty(size, device=self.device, dtype=torch.float32)

        def encode_rows(rows: np.ndarray) -> int:
            # Both are settings of a thread.
            with torch.inference_mode(), autocast(self.device, precision):
                embeddings = self.embed(pack([tokens], rows), pool)
                result[to_device(torch.from_numpy(rows), self.device)] = embeddings
            return len(rows)

        threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        most = batch_tokens(self.device)
        if threads > 1:  # divide few tokens among the threads
            most = min(most, max(LEAST_TOKENS, -(-int(tokens.lengths.sum()) // threads)))
        training = self.encoder.training
        self.encoder.eval()
        try:
            batches = sorted_batches(tokens.lengths, most)
            for done in in_threads(encode_rows, batches, threads):
                if count is not None:
                    count(done)
        finally:
            self.encoder.train(training)
        if not result.square().sum(1).isfinite().all():  # their length, by which some divide
            raise EncoderError("expected finite embeddings: weights of the encoder are too large")
        return (F.normalize(result) if normalize else result).cpu().numpy()

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a folder that `from_pretrained` opens.

        transformers and sentence-transformers also open the folder of a transformer. An encoder in
        the folder is replaced. Raise EncoderError for the folder of a run, of an export with
        heads, or of another program.
        """
        folder = Path(folder).expanduser()
        make_folder(folder)
        save_encoder(self.encoder, folder)
        self.tokenizer.save(folder)
        write_sentence_settings(folder, self.sentence_settings, self.width)


WINDOW = 8192  # sentences held in memory and sorted together
LEAST_TOKENS = 512  # of a batch: below, its products are slower


def batch_tokens(device: torch.device) -> int:
    """Return the cells per batch: few on a CPU, to fit its caches; many on a GPU, to fill it."""
    return 2048 if device.type == "cpu" else 65536
