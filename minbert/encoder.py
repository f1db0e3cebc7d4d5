"""The transformer encoder, written from scratch over packed tokens.

Shapes: T tokens of the batch, H hidden width. All modules except attention work on (T, H) without
padding, apart from a few rows if the kernels require T to be rounded up.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.attention import AttentionLayout, attend
from minbert.batching import Batch
from minbert.config import EncoderConfig
from minbert.dropout import Dropout
from minbert.linear import Linear, shape_multiples


class Layer(nn.Module):
    """Attention and feed-forward, each followed by a residual connection and a layer norm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.up = Linear(config.hidden_size, config.intermediate_size, config.activation)
        self.down = Linear(config.intermediate_size, config.hidden_size)
        self.output_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout)

    def forward(self, hidden: Tensor, layout: AttentionLayout) -> Tensor:
        attended = self.attention(hidden, layout)  # (T, H)
        hidden = self.attention_norm(hidden + self.dropout(attended))
        output = self.down(self.up(hidden))  # through (T, 4H)
        return self.output_norm(hidden + self.dropout(output))


class SelfAttention(nn.Module):
    """Multi-head attention of each token to the tokens of its own sequence."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.qkv = Linear(config.hidden_size, 3 * config.hidden_size)
        self.output = Linear(config.hidden_size, config.hidden_size)
        self.dropout = Dropout(config.attention_dropout)

    def forward(self, hidden: Tensor, layout: AttentionLayout) -> Tensor:
        qkv = self.qkv(hidden)  # (T, 3H)
        return self.output(attend(qkv, layout, self.dropout))  # (T, H)


class Embeddings(nn.Module):
    """Sum of word, position and token type embeddings, normalised (Devlin et al., 2019, Fig. 2)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word = empty_embedding(config.vocab_size, config.hidden_size)
        self.position = empty_embedding(config.max_positions, config.hidden_size)
        self.token_type = empty_embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout)
        self.position_offset = config.position_offset

    def forward(self, batch: Batch) -> Tensor:
        return add_noise(self.dropout(self.vectors(batch)), batch)

    def vectors(self, batch: Batch) -> Tensor:
        """Return the vectors before dropout and noise (T, H)."""
        words = self.word(batch.ids)  # (T, H)
        if batch.segments is None:
            types = self.token_type.weight[0]  # (H,)
        else:
            types = self.token_type(batch.segments)  # (T, H)
        positions = self.position(batch.positions + self.position_offset)  # (T, H)
        return self.norm(words + types + positions)


def add_noise(vectors: Tensor, batch: Batch) -> Tensor:
    """Add the batch's adversarial noise, if it has any, to vectors (T, H)."""
    return vectors if batch.noise is None else vectors + batch.noise


def empty_embedding(rows: int, width: int) -> nn.Embedding:
    """Return an embedding with uninitialised weights.

    PyTorch's initialisation would be overwritten, and on the meta device it loads the compiler.
    """
    return nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)


class Encoder(nn.Module):
    """Encoder of tokens into hidden states (T, H) of the last layer."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))

    def forward(self, batch: Batch) -> Tensor:
        """Return the hidden states (T, H)."""
        hidden = self.embeddings(batch)
        layout = AttentionLayout(batch, self.config.num_heads, shape_multiples(hidden))
        if more := layout.tokens - batch.tokens:  # otherwise save two copies
            hidden = F.pad(hidden, (0, 0, 0, more))
        for layer in self.layers:
            hidden = layer(hidden, layout)
        return hidden[: batch.tokens] if more else hidden


def random_encoder(config: EncoderConfig, seed: int = 0) -> Encoder:
    """Return an encoder with BERT's initialisation (normal, std 0.02) from a random seed."""
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
