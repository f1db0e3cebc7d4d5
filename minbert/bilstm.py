"""A BiLSTM over word embeddings with the transformer's interface (SuperConText, section IV).

Shapes: T tokens of the batch, E width of a word embedding, U units per direction. Tokens are packed
and never padded: an LSTM processes them time step by time step, the longest sequences first.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from minbert.batching import Batch
from minbert.config import BiLSTMConfig
from minbert.dropout import Dropout
from minbert.encoder import add_noise, empty_embedding


class WordEmbeddings(nn.Module):
    """One embedding per word, with dropout."""

    def __init__(self, config: BiLSTMConfig) -> None:
        super().__init__()
        self.word = empty_embedding(config.vocab_size, config.embedding_size)
        self.dropout = Dropout(config.dropout)

    def forward(self, batch: Batch) -> Tensor:
        return add_noise(self.dropout(self.vectors(batch)), batch)  # (T, E)

    def vectors(self, batch: Batch) -> Tensor:
        """Return the vectors before dropout and noise (T, E)."""
        return self.word(batch.ids)


class BiLSTM(nn.Module):
    """Encoder of tokens into states of both directions (T, 2U), in the order of the batch."""

    def __init__(self, config: BiLSTMConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = WordEmbeddings(config)
        widths = [config.embedding_size] + [config.hidden_size] * (config.num_layers - 1)
        self.layers = nn.ModuleList(
            nn.LSTM(width, config.units, bidirectional=True) for width in widths
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, batch: Batch) -> Tensor:
        order, sizes = by_time(batch)
        hidden = self.embeddings(batch)
        for layer in self.layers:
            states = layer(PackedSequence(hidden[order], sizes))[0].data
            hidden = self.dropout(torch.empty_like(states).index_copy(0, order, states))  # (T, 2U)
        return hidden


def by_time(batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the order of tokens in a PackedSequence (T,), and the sequences per time step.

    Tokens are ordered by their position, the longest sequences first. The numbers of sequences are
    on the CPU.
    """
    ranks = torch.empty_like(batch.lengths)
    ranks[batch.lengths.argsort(descending=True, stable=True)] = torch.arange(len(ranks))
    rank = ranks.to(batch.device)[batch.sequence]  # (T,)
    steps = torch.arange(batch.longest)
    return (batch.positions * len(ranks) + rank).argsort(), (batch.lengths[:, None] > steps).sum(0)


def random_bilstm(config: BiLSTMConfig, seed: int = 0) -> BiLSTM:
    """Initialise a BiLSTM from a random seed: PyTorch's LSTM, words normal with std 0.1."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = BiLSTM(config)
        with torch.no_grad():
            encoder.embeddings.word.weight.normal_(0, 0.1)
    return encoder
