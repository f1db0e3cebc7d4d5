"""The shared bi-encoder with one head per task."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from zlib import crc32

import torch
from torch import Tensor, nn

from minbert.batching import Batch
from minbert.bi_encoder import BiEncoder, autocast
from minbert.dropout import Dropout, DropoutStream
from minbert.folder import load_encoder
from minbert.pooling import Pool
from minbert.weights import check_weights, read_tensors, save_tensors
from multitask.checkpoint_folders import CheckpointError
from tasks.base import Task
from tasks.heads import PoolsTokens


class EncoderWithHeads(nn.Module):
    """One encoder for all sentences, and one head for each task in `heads`."""

    def __init__(
        self, bi_encoder: BiEncoder, tasks: Mapping[str, Task], seed: int, precision: str = "fp32"
    ) -> None:
        super().__init__()
        self.bi_encoder, self.precision = bi_encoder, precision
        self.frozen = False
        # A head's initial weights depend on seed and name, not on the other tasks of the run.
        self.heads = nn.ModuleDict()
        for name, task in tasks.items():
            with torch.random.fork_rng(devices=[]):
                # The generator takes at most 32 bits.
                torch.manual_seed(crc32(f"{seed} {name}".encode()))
                self.heads[name] = task.build_head(bi_encoder.width)
        for module in self.heads.modules():
            if isinstance(module, Dropout):
                module.stream = self.dropout_stream

    @property
    def dropout_stream(self) -> DropoutStream:
        """The random stream of the dropout in encoder and heads."""
        return self.bi_encoder.encoder.stream

    def pooling_of(self, task: str | None) -> Pool | None:
        """Return the pooling of a task's head, or None if it has none."""
        head = None if task is None else self.heads[task]
        return head.pool if isinstance(head, PoolsTokens) else None

    def embedding_width(self, task: str | None) -> int:
        """Return the width of the embeddings that `embed` returns for a task."""
        head = None if task is None else self.heads[task]
        return head.pooled_width if isinstance(head, PoolsTokens) else self.bi_encoder.width

    def embed(self, batch: Batch, task: str | None = None) -> tuple[Tensor, ...]:
        """Return float32 embeddings (B, H), one tensor for each text of an example.

        The pooling is that of the head of `task`, or by default that of the encoder.
        """
        if self.training and self.frozen:  # for the dropout of heads; the encoder begins no pass
            self.dropout_stream.next_pass()
        with (
            autocast(self.bi_encoder.device, self.precision),
            torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen),
        ):
            return batch.split(self.bi_encoder.embed(batch, self.pooling_of(task)))

    def sections(self) -> dict[str, list[nn.Parameter]]:
        """Return the shared parameters by the part of the encoder, from the input to the output."""
        encoder = self.bi_encoder.encoder
        layers = {f"layer {i}": layer for i, layer in enumerate(encoder.layers, 1)}
        parts = {"embeddings": encoder.embeddings, **layers}
        return {name: list(part.parameters()) for name, part in parts.items()}

    def check_sections(self) -> None:
        """Raise ValueError for a trained parameter that is in no section and no head."""
        known = {id(p) for several in self.sections().values() for p in several}
        known |= {id(p) for p in self.heads.parameters()}
        for name, parameter in self.named_parameters():
            if parameter.requires_grad and id(parameter) not in known:
                raise ValueError(f"expected {name} in a section of the encoder or in a head")

    def make_words_sparse(self) -> nn.Parameter:
        """Make the gradients of the word embeddings sparse, and return these embeddings."""
        lookup = self.bi_encoder.encoder.embeddings.word
        lookup.sparse = True
        weight = lookup.weight
        assert isinstance(weight, nn.Parameter)
        return weight

    def freeze_encoder(self, frozen: bool = True) -> None:
        """Train only the heads (BEES, M1): no gradient and no dropout in the encoder."""
        self.frozen = frozen
        self.bi_encoder.requires_grad_(not frozen)

    def train(self, mode: bool = True) -> EncoderWithHeads:
        super().train(mode)
        if self.frozen:
            self.bi_encoder.eval()
        return self

    @property
    def finite(self) -> bool:
        """Whether every weight is finite."""
        return all(bool(parameter.isfinite().all()) for parameter in self.parameters())

    def save(self, folder: Path) -> None:
        """Save the encoder in the format of transformers, and the heads in the same folder."""
        self.bi_encoder.save_pretrained(folder)
        self.save_heads(folder)

    def save_heads(self, folder: Path) -> None:
        """Save only the heads."""
        heads = {name: value.contiguous() for name, value in self.heads.state_dict().items()}
        save_tensors(heads, folder / "heads.safetensors")

    def load(self, folder: Path) -> None:
        """Load weights that `save` wrote for the same encoder and heads."""
        saved, _ = load_encoder(folder, self.bi_encoder.encoder.config)
        self.bi_encoder.encoder.load_state_dict(saved.state_dict())
        self.load_heads(folder)

    def load_heads(self, folder: Path) -> None:
        """Load only the heads."""
        self.heads.load_state_dict(self.saved_heads(folder))

    def saved_heads(self, folder: Path) -> dict[str, Tensor]:
        """Return the tensors of `save_heads`; raise CheckpointError if unusable."""
        file = folder / "heads.safetensors"
        saved = read_tensors(file, CheckpointError)
        weights = [n for n, value in self.heads.state_dict().items() if value.is_floating_point()]
        check_weights({n: saved[n] for n in weights if n in saved}, file, CheckpointError)
        return saved

    def load_matching_heads(self, folder: Path, names: Container[str]) -> list[str]:
        """Load these heads of another run if their shapes match; return the loaded names."""
        saved = self.saved_heads(folder)
        taken = []
        for name, head in self.heads.items():
            if name not in names:
                continue
            own = {
                key.removeprefix(f"{name}."): value
                for key, value in saved.items()
                if key.startswith(f"{name}.")
            }
            shapes = {key: value.shape for key, value in head.state_dict().items()}
            if own and {key: value.shape for key, value in own.items()} == shapes:
                head.load_state_dict(own)
                taken.append(name)
        return taken
