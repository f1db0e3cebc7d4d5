"""Texts of several tasks through the encoder, each text once where the tasks allow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from minbert.batching import TokenLists, concatenated
from multitask.model import EncoderWithHeads

EncoderOf = Callable[[str | None], nn.Module]


def embed_tasks(
    model: EncoderWithHeads, encoder_of: EncoderOf, tokens: Mapping[str, Sequence[TokenLists]]
) -> dict[str, tuple[Tensor, ...]]:
    """Map the tokens of each task's texts, of n examples, to embeddings, each (n, H).

    A task is encoded in a separate pass if its head pools the tokens itself, or if it has an
    adapter. `encoder_of` a task returns the encoder with its adapter; of None, the shared one.
    """
    found: dict[str, tuple[Tensor, ...]] = {}
    groups: dict[tuple[str | None, bool], list[str]] = {}
    for name, texts in tokens.items():
        own = model.pooling_of(name) is not None or name in model.adapters
        separate = name if own else None
        groups.setdefault((separate, texts[0].segments is not None), []).append(name)
    for (separate, _), names in groups.items():
        texts = [one for name in names for one in tokens[name]]
        vectors = iter(embed_once(model, encoder_of(separate), texts, separate))
        found |= {name: tuple(next(vectors) for _ in tokens[name]) for name in names}
    return found


def embed_once(
    model: EncoderWithHeads, encoder: nn.Module, several: Sequence[TokenLists], task: str | None
) -> list[Tensor]:
    """Return the embeddings (n, H) of each list of sequences; encode equal sequences once."""
    tokens = concatenated(several)
    rows, which = tokens.distinct()
    pooling = model.pooling_of(task), model.embedding_width(task)
    vectors = model.bi_encoder.encode_window(
        encoder, tokens.select(rows), False, lambda done: None, *pooling
    )
    spread = torch.from_numpy(vectors[which]).to(model.bi_encoder.device)
    return list(spread.split([len(one) for one in several]))
