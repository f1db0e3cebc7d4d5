"""Self-attention over packed tokens: each token attends to the tokens of its own sequence.

Letters of the shapes: T tokens of the batch, S sequences, L tokens of the longest, A attention
heads, D width of a head.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from minbert.batching import Batch
from minbert.dropout import Dropout

SDPA_TOKENS = 128  # on a CPU PyTorch's fused kernel is the faster one only above this length


def attend(qkv: Tensor, layout: AttentionLayout, dropout: Dropout) -> Tensor:
    """Queries, keys and values side by side (T, 3 A D) -> context (T, A D).

    Fused kernels are taken where they are faster: on a GPU, and for long text on a CPU. They draw
    dropout from PyTorch's generator, so where dropout acts the weights are computed explicitly.
    """
    if dropout.active:
        return explicit_attention(qkv, layout, dropout)
    if qkv.is_cuda:
        able = has_varlen(qkv, layout.heads)
        return varlen_attention(qkv, layout) if able else sdpa_attention(qkv, layout)
    if layout.columns > SDPA_TOKENS:
        return sdpa_attention(qkv, layout)
    return explicit_attention(qkv, layout, dropout)


class AttentionLayout:
    """Where packed tokens lie on the (S, L) grid on which attention multiplies matrices.

    Made once a batch and shared by the layers; what a kernel does not need is never computed.
    `steps` is what the number of tokens and the grid's columns are rounded up to: tokens past the
    batch's own, to `tokens` in all, are nobody's, which no sequence attends to.
    """

    def __init__(self, batch: Batch, heads: int, steps: tuple[int, int] = (1, 1)) -> None:
        self.batch, self.heads = batch, heads
        self.tokens = rounded_up(batch.tokens, steps[0])
        self.rows, self.columns = len(batch.lengths), rounded_up(batch.longest, steps[1])
        self.full = self.rows * self.columns == batch.tokens

    @cached_property
    def inside(self) -> Tensor:
        """Which cells of the grid hold a token: (S, L)."""
        columns = torch.arange(self.columns, device=self.batch.device)
        return columns < self.batch.device_lengths[:, None]

    @cached_property
    def home(self) -> Tensor:
        """Row of each token and head in a (S A L, D) matrix: (T A,)."""
        batch = self.batch
        heads = torch.arange(self.heads, device=batch.device)
        blocks = batch.sequence[:, None] * self.heads + heads  # (T, A)
        return (blocks * self.columns + batch.positions[:, None]).flatten()

    @cached_property
    def sources(self) -> tuple[Tensor, Tensor, Tensor]:
        """For q, k and v: rows of packed qkv (T 3 A, D) in the order of a (S A L, D) matrix.

        A cell behind the end of its sequence repeats the first token: as a key it is masked, as
        a query it is never read.
        """
        batch, heads = self.batch, self.heads
        columns = torch.arange(self.columns, device=batch.device)
        token = batch.starts[:, None] + torch.where(self.inside, columns, 0)  # (S, L)
        head = torch.arange(heads, device=batch.device)[:, None]  # (A, 1)
        query = (token[:, None] * (3 * heads) + head).flatten()  # (S A L,)
        return query, query + heads, query + 2 * heads

    @cached_property
    def mask(self) -> Tensor | None:
        """(S A, 1, L): -inf for keys behind the end of a sequence, else 0; None without any."""
        if self.full:
            return None
        mask = torch.zeros(self.inside.shape, device=self.batch.device)
        mask = mask.masked_fill(~self.inside, -torch.inf)  # (S, L)
        return mask.repeat_interleave(self.heads, 0)[:, None]

    def split(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(T, 3 A D) -> query, key and value, each (S A, L, D)."""
        return ToHeads.apply(qkv, self)

    def join(self, context: Tensor) -> Tensor:
        """(S A, L, D) -> (T, A D)."""
        return FromHeads.apply(context, self)

    def to_grid(self, rows: Tensor) -> Tensor:
        """(S A L, D) -> (S A, L, D)."""
        return rows.view(self.rows * self.heads, self.columns, -1)

    def to_tokens(self, grid: Tensor) -> Tensor:
        """(S A, L, D) -> (T, A D), zero for nobody's tokens."""
        cells = grid.reshape(-1, grid.shape[-1])  # (S A L, D)
        rows = cells.new_empty(self.tokens * self.heads, cells.shape[1])
        torch.index_select(cells, 0, self.home, out=rows[: len(self.home)])
        rows[len(self.home) :] = 0
        return rows.view(self.tokens, -1)


def rounded_up(number: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-number // step) * step


class ToHeads(torch.autograd.Function):
    """Packed tokens -> heads. Autograd would add rows up; here both ways only copy them."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, layout: AttentionLayout) -> tuple[Tensor, ...]:
        ctx.layout = layout
        rows = qkv.reshape(layout.tokens * 3 * layout.heads, -1)
        return tuple(layout.to_grid(rows.index_select(0, source)) for source in layout.sources)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # Cells behind the end have no gradient: masked as keys, never read as queries.
        return torch.cat([ctx.layout.to_tokens(grad) for grad in grads], 1), None


class FromHeads(torch.autograd.Function):
    """Heads -> packed tokens."""

    @staticmethod
    def forward(ctx: Any, context: Tensor, layout: AttentionLayout) -> Tensor:
        ctx.layout = layout
        return layout.to_tokens(context)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        layout = ctx.layout
        rows = grad.reshape(layout.tokens * layout.heads, -1)[: len(layout.home)]  # (T A, D)
        cells = layout.rows * layout.heads * layout.columns
        grid = rows.new_zeros(cells, rows.shape[1]).index_copy(0, layout.home, rows)
        return layout.to_grid(grid), None


def explicit_attention(qkv: Tensor, layout: AttentionLayout, dropout: Dropout) -> Tensor:
    """softmax(q k^T / sqrt(D)) v, written out (Vaswani et al., 2017, Eq. 1)."""
    query, key, value = layout.split(qkv)  # each (S A, L, D)
    mask = query.new_zeros(1, 1, 1) if layout.mask is None else layout.mask.to(query.dtype)
    scale = 1 / math.sqrt(query.shape[-1])
    scores = torch.baddbmm(mask, query, key.transpose(1, 2), alpha=scale)  # (S A, L, L)
    return layout.join(torch.bmm(dropout(scores.softmax(-1)), value))


def sdpa_attention(qkv: Tensor, layout: AttentionLayout) -> Tensor:
    """The same with PyTorch's fused kernel on the padded grid."""
    shape = (layout.rows, layout.heads, layout.columns, -1)
    query, key, value = (part.view(shape) for part in layout.split(qkv))  # (S, A, L, D)
    mask = None
    if layout.mask is not None:
        mask = layout.mask.view(layout.rows, layout.heads, 1, -1).to(query.dtype)
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return layout.join(context.flatten(0, 1))


def has_varlen(qkv: Tensor, heads: int) -> bool:
    """Flash attention takes 16-bit numbers and heads of 8 to 256 on GPUs since Ampere."""
    half = qkv.dtype in (torch.bfloat16, torch.float16)
    width = qkv.shape[1] // (3 * heads)
    fits = width % 8 == 0 and width <= 256
    return half and fits and torch.cuda.get_device_capability(qkv.device) >= (8, 0)


def varlen_attention(qkv: Tensor, layout: AttentionLayout) -> Tensor:
    """The same over packed tokens as they are, with flash attention (Dao, 2023): no grid at all."""
    from torch.nn.attention.varlen import varlen_attn

    query, key, value = qkv.view(layout.tokens, 3, layout.heads, -1).unbind(1)  # (T, A, D)
    ends = layout.batch.boundaries
    longest = layout.columns
    context = varlen_attn(query, key, value, ends, ends, longest, longest)
    assert isinstance(context, Tensor)
    return context.flatten(1)  # (T, A D)
