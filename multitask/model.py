"""The shared bi-encoder with one head per task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self, cast
from zlib import crc32

import torch
from torch import Tensor, nn

from common.errors import RunError, SettingsError, one_line
from minbert.batching import Batch
from minbert.bi_encoder import BiEncoder
from minbert.bilstm import BiLSTM
from minbert.checksums import HEADS
from minbert.config import transformer_config
from minbert.dropout import Dropout
from minbert.encoder import Encoder
from minbert.folder import load_encoder
from minbert.layer_copies import branch, copied_layers
from minbert.pooling import POOLINGS, Pool
from minbert.precision import autocast
from minbert.weights import check_weights, read_tensors, save_tensors
from tasks.base import Embeddings, Task


class EncoderWithHeads(nn.Module):
    """One encoder for all sentences, and one head for each task in `heads`.

    `branches` holds each task's copy of the last `own_layers` layers. In training, the token states
    have `pooling_dropout` before they are pooled.
    """

    def __init__(
        self,
        bi_encoder: BiEncoder,
        tasks: Mapping[str, Task],
        seed: int,
        precision: str = "fp32",
        own_layers: int = 0,
        pooling_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.pooling_dropout = Dropout(pooling_dropout)
        self.bi_encoder, self.precision, self.frozen = bi_encoder, precision, False
        self.heads, self.branches = nn.ModuleDict(), nn.ModuleDict()
        for name, task in tasks.items():
            with torch.random.fork_rng(devices=[]):  # the same head whatever the other tasks are
                torch.manual_seed(crc32(f"{seed} {name}".encode()))  # at most 32 bits
                self.heads[name] = task.build_head(bi_encoder.width)
        if own_layers:
            count = transformer_config("branch", self.encoder.config).num_layers
            if own_layers > count:
                expected = f"at most top-{count}, the number of the encoder's layers"
                raise SettingsError(f"branch: expected {expected}, found top-{own_layers}")
            for name in tasks:
                self.branches[name] = copied_layers(self.encoder, own_layers)
            self.encoder.layers[count - own_layers :].requires_grad_(False)  # no task uses them

    @property
    def encoder(self) -> Encoder | BiLSTM:
        """The shared encoder."""
        return self.bi_encoder.encoder

    def bi_encoder_of(self, task: str | None) -> BiEncoder:
        """Return the bi-encoder with the own layers of a task; the shared one for None."""
        if task is None or task not in self.branches:
            return self.bi_encoder
        layers = cast(nn.ModuleList, self.branches[task])
        return self.bi_encoder.with_encoder(branch(cast(Encoder, self.encoder), layers))

    @property
    def trains_only_heads(self) -> bool:
        """Whether no gradient is needed below the embeddings of sentences."""
        return self.frozen and not self.branches

    def pooling_of(self, task: str | None) -> Pool | None:
        """Return the pooling of a task's head, or None if it has none."""
        return None if task is None else getattr(self.heads[task], "pool", None)

    def embedding_width(self, task: str | None) -> int:
        """Return the width of the embeddings that `embed` returns for a task."""
        head = None if task is None else self.heads[task]
        return getattr(head, "pooled_width", self.bi_encoder.width)

    def embed(self, batch: Batch, task: str | None = None) -> Embeddings:
        """Return float32 embeddings (B, H), one tensor for each text of an example.

        The pooling is that of the head of `task`, or by default that of the encoder. The encoder
        has the own layers of `task`, if there are any.
        """
        pool = self.pooling_of(task) or POOLINGS[self.bi_encoder.pooling]

        def dropped(hidden: Tensor, batch: Batch) -> Tensor:
            return pool(self.pooling_dropout(hidden), batch)

        with (
            autocast(self.bi_encoder.device, self.precision),
            torch.set_grad_enabled(torch.is_grad_enabled() and not self.trains_only_heads),
        ):
            return batch.split(self.bi_encoder_of(task).embed(batch, dropped))

    def sections(self) -> dict[str, list[nn.Parameter]]:
        """Return the shared parameters by the part of the encoder, from the input to the output.

        Layers that no task uses are among them; they have no gradients.
        """
        layers = {f"layer {i}": layer for i, layer in enumerate(self.encoder.layers, 1)}
        parts = {"embeddings": self.encoder.embeddings, **layers}
        return {name: list(part.parameters()) for name, part in parts.items()}

    def freeze_encoder(self) -> None:
        """Train only heads (BEES, M1) and own layers of tasks, not the shared encoder.

        The encoder has dropout only if there are such layers.
        """
        self.frozen = True
        self.bi_encoder.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.trains_only_heads:
            self.bi_encoder.eval()
        return self

    def of_tasks(self) -> nn.ModuleDict:
        """Return what belongs to single tasks: heads, and branches, if there are any."""
        return nn.ModuleDict({"heads": self.heads, "branches": self.branches})

    def save(self, folder: Path) -> None:
        """Save the encoder in the format of transformers, heads and branches in the same folder."""
        self.bi_encoder.save_pretrained(folder)
        tensors = self.of_tasks().state_dict()
        save_tensors({name: one.contiguous() for name, one in tensors.items()}, folder / HEADS)

    def load(self, folder: Path) -> None:
        """Load weights that `save` wrote for the same encoder, heads and branches."""
        saved, _ = load_encoder(folder, self.encoder.config)
        self.encoder.load_state_dict(saved.state_dict())
        self.load_heads(folder)

    def load_heads(self, folder: Path) -> None:
        """Load only heads and branches; raise RunError if they cannot be used."""
        try:
            self.of_tasks().load_state_dict(self.read_heads(folder))
        except RuntimeError as error:
            raise RunError(f"{folder / HEADS}: {one_line(str(error))}") from error

    def load_matching(self, folder: Path) -> list[str]:
        """Load the heads and branches whose shapes match; return the tasks whose heads did."""
        saved, taken = self.read_heads(folder), []
        for kind, modules in (("heads", self.heads), ("branches", self.branches)):
            for name, module in modules.items():
                start, known = f"{kind}.{name}.", module.state_dict()
                own = {k.removeprefix(start): v for k, v in saved.items() if k.startswith(start)}
                shapes = [{key: one.shape for key, one in many.items()} for many in (own, known)]
                if own and shapes[0] == shapes[1]:
                    module.load_state_dict(own)
                    taken += [name] if kind == "heads" else []
        return taken

    def read_heads(self, folder: Path) -> dict[str, Tensor]:
        """Return the tensors of heads and branches; raise RunError if one is unusable."""
        saved = read_tensors(folder / HEADS, RunError)
        weights = [n for n, one in self.of_tasks().state_dict().items() if one.is_floating_point()]
        check_weights({n: saved[n] for n in weights if n in saved}, folder / HEADS, RunError)
        return saved
