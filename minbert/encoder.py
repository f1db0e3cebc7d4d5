"""The transformer encoder, written from scratch over packed tokens.

Letters of the shapes: T tokens of the batch, S sequences, L tokens of the longest, H hidden width,
A attention heads, D = H / A. Everything but attention works on (T, H) and never sees padding.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.batching import Batch
from minbert.config import EncoderConfig

ACTIVATION_FUNCTIONS = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}


def lookup_table(rows: int, width: int) -> nn.Embedding:
    """An embedding whose weights are yet to be filled.

    PyTorch's own random start would be thrown away, and on the meta device it loads the compiler.
    """
    return nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)


class Embeddings(nn.Module):
    """Word + position + token type, normalised (Devlin et al., 2019, Fig. 2)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word = lookup_table(config.vocab_size, config.hidden_size)
        self.position = lookup_table(config.max_positions, config.hidden_size)
        self.token_type = lookup_table(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.position_offset = config.position_offset

    def forward(self, batch: Batch) -> Tensor:
        words = self.words(batch)  # (T, H)
        if batch.segments is None:
            types = self.token_type.weight[0]  # (H,)
        else:
            types = self.token_type(batch.segments)  # (T, H)
        positions = self.position(batch.positions + self.position_offset)  # (T, H)
        return self.dropout(self.norm(words + types + positions))

    def words(self, batch: Batch) -> Tensor:
        """Word embeddings (T, H), which adversarial training perturbs."""
        if batch.embeddings is not None:
            return batch.embeddings
        return self.word(batch.ids)


class SelfAttention(nn.Module):
    """Multi-head attention of each token to the tokens of its own sequence."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.attention_dropout)
        self.heads, self.head_size = config.num_heads, config.head_size

    def forward(self, hidden: Tensor, grid: AttentionGrid) -> Tensor:
        qkv = grid.scatter(self.qkv(hidden))  # (S, L, 3H)
        qkv = qkv.view(grid.rows, grid.columns, 3, self.heads, self.head_size)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # each (S, A, L, D)
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.head_size)  # (S, A, L, L)
        if grid.padding is not None:
            scores = scores.masked_fill(grid.padding, -torch.inf)
        context = self.dropout(scores.softmax(-1)) @ value  # (S, A, L, D)
        context = context.transpose(1, 2).reshape(grid.rows, grid.columns, -1)  # (S, L, H)
        return self.output(grid.gather(context))  # (T, H)


class AttentionGrid:
    """Where packed tokens lie on the (S, L) grid on which attention multiplies matrices.

    Made once a batch and shared by the layers. Cells without a token stay zero; `padding`
    (S, 1, 1, L) is True there so that no token attends to them, None if every cell has a token.
    """

    def __init__(self, batch: Batch) -> None:
        self.rows, self.columns = len(batch.lengths), batch.longest
        self.full = self.rows * self.columns == len(batch.sequence)
        self.cells = batch.sequence * self.columns + batch.positions  # (T,)
        lengths = batch.lengths.to(batch.device)
        columns = torch.arange(self.columns, device=batch.device)
        self.padding = None if self.full else (columns >= lengths[:, None])[:, None, None]

    def scatter(self, packed: Tensor) -> Tensor:
        """(T, W) -> (S, L, W)."""
        if not self.full:
            cells = packed.new_zeros(self.rows * self.columns, packed.shape[1])
            packed = cells.index_copy(0, self.cells, packed)
        return packed.view(self.rows, self.columns, -1)

    def gather(self, grid: Tensor) -> Tensor:
        """(S, L, W) -> (T, W)."""
        flat = grid.flatten(0, 1)
        return flat if self.full else flat[self.cells]


class Layer(nn.Module):
    """Attention and feed-forward, each with a residual connection and normalised after it."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.output_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.activation = ACTIVATION_FUNCTIONS[config.activation]

    def forward(self, hidden: Tensor, grid: AttentionGrid) -> Tensor:
        hidden = self.attention_norm(hidden + self.dropout(self.attention(hidden, grid)))  # (T, H)
        wide = self.activation(self.up(hidden))  # (T, 4H)
        return self.output_norm(hidden + self.dropout(self.down(wide)))  # (T, H)


class Encoder(nn.Module):
    """Sentences' tokens -> hidden states (T, H) of the last layer."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))

    def forward(self, batch: Batch) -> Tensor:
        if batch.longest > self.config.max_tokens:
            raise ValueError(
                f"expected at most {self.config.max_tokens} tokens a sequence, "
                f"found {batch.longest}"
            )
        grid = AttentionGrid(batch)
        hidden = self.embeddings(batch)
        for layer in self.layers:
            hidden = layer(hidden, grid)
        return hidden


def random_encoder(config: EncoderConfig, seed: int = 0) -> Encoder:
    """An encoder with BERT's random start (normal, std 0.02), the same for the same seed."""
    encoder = Encoder(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif "norm" in name:
                parameter.fill_(1.0)
            else:
                parameter.normal_(0.0, 0.02, generator=generator)
    return encoder
