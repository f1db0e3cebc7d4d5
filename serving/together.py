"""Embedding the texts of several tasks together; each distinct sequence is encoded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from minbert.batching import TokenLists
from minbert.folder import AnyEncoder
from multitask.model import EncoderWithHeads


def embed_tasks(
    model: EncoderWithHeads, encoder: AnyEncoder, tokens: Mapping[str, Sequence[TokenLists]]
) -> dict[str, tuple[Tensor, ...]]:
    """Map the tokens of each task's texts, of n examples, to embeddings, each (n, H).

    A task whose head pools the tokens itself is encoded in a separate pass.
    """
    found: dict[str, tuple[Tensor, ...]] = {}
    groups: dict[tuple[str | None, bool], list[str]] = {}
    for name, texts in tokens.items():
        own = name if model.pooling_of(name) is not None else None
        groups.setdefault((own, texts[0].segments is not None), []).append(name)
    for (own, _), names in groups.items():
        every = [one for name in names for one in tokens[name]]
        vectors = iter(embed_once(model, encoder, every, own))
        found |= {name: tuple(next(vectors) for _ in tokens[name]) for name in names}
    return found


def embed_once(
    model: EncoderWithHeads, encoder: AnyEncoder, several: Sequence[TokenLists], task: str | None
) -> list[Tensor]:
    """Return the embeddings (n, H) of each list of sequences; encode equal sequences once."""
    tokens = concatenated(several)
    rows, which = tokens.distinct()
    vectors = model.bi_encoder.encode_window(
        encoder,
        tokens.at(rows),
        False,
        lambda done: None,
        model.pooling_of(task),
        model.embedding_width(task),
    )
    spread = torch.from_numpy(vectors[which]).to(model.bi_encoder.device)
    return list(spread.split([len(one) for one in several]))


def concatenated(several: Sequence[TokenLists]) -> TokenLists:
    """Concatenate lists of sequences; either all of them have segments or none has."""
    lengths = np.concatenate([one.lengths for one in several])
    segments = [one.segments for one in several if one.segments is not None]
    return TokenLists(
        np.concatenate([one.ids for one in several]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([one.cut for one in several]),
        np.concatenate(segments) if segments else None,
    )
