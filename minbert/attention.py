"""Self-attention over packed tokens: each token attends to the tokens of its own sequence.

Shapes: T tokens of the batch, S sequences, L tokens of the longest sequence, A attention heads,
D width of a head.
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

SDPA_TOKENS = 128  # on a CPU PyTorch's fused kernel is faster only above this length


def attend(qkv: Tensor, layout: AttentionLayout, dropout: Dropout) -> Tensor:
    """Compute the context (T, A D) from concatenated queries, keys and values (T, 3 A D).

    Fused kernels are used if they are faster: on a GPU, and for long text on a CPU. Active dropout
    requires explicit attention weights. So do gradients on a GPU, which fused kernels add up in an
    order that changes from call to call.
    """
    if dropout.active or (qkv.is_cuda and qkv.requires_grad):
        return explicit_attention(qkv, layout, dropout)
    if qkv.is_cuda:
        able = has_varlen(qkv, layout.heads)
        return varlen_attention(qkv, layout) if able else sdpa_attention(qkv, layout)
    if layout.columns > SDPA_TOKENS:
        return sdpa_attention(qkv, layout)
    return explicit_attention(qkv, layout, dropout)


class AttentionLayout:
    """Mapping between packed tokens and the padded (S, L) grid for attention's matrix products.

    Built once per batch and shared by the layers; index tensors are computed only when needed.
    The number of tokens and of grid columns are rounded up to `multiples`. The resulting
    `tokens` include padding tokens after those of the batch, to which no sequence attends.
    """

    def __init__(self, batch: Batch, heads: int, multiples: tuple[int, int] = (1, 1)) -> None:
        self.batch, self.heads = batch, heads
        self.tokens = round_up(batch.tokens, multiples[0])
        self.rows, self.columns = len(batch.lengths), round_up(batch.longest, multiples[1])
        self.full = self.rows * self.columns == batch.tokens

    @cached_property
    def token_mask(self) -> Tensor:
        """Mask of the grid cells that hold a token (S, L)."""
        columns = torch.arange(self.columns, device=self.batch.device)
        return columns < self.batch.device_lengths[:, None]

    @cached_property
    def token_rows(self) -> Tensor:
        """Row of each token and head in a (S A L, D) matrix (T A,)."""
        batch = self.batch
        heads = torch.arange(self.heads, device=batch.device)
        blocks = batch.sequence[:, None] * self.heads + heads  # (T, A)
        return (blocks * self.columns + batch.positions[:, None]).flatten()

    @cached_property
    def qkv_rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of q, k and v in packed qkv (T 3 A, D), in the order of a (S A L, D) matrix.

        A padding cell repeats the first token of its sequence. As a key it is masked; as a query
        it is never read.
        """
        batch, heads = self.batch, self.heads
        columns = torch.arange(self.columns, device=batch.device)
        token = batch.starts[:, None] + torch.where(self.token_mask, columns, 0)  # (S, L)
        head = torch.arange(heads, device=batch.device)[:, None]  # (A, 1)
        query = (token[:, None] * (3 * heads) + head).flatten()  # (S A L,)
        return query, query + heads, query + 2 * heads

    @cached_property
    def mask(self) -> Tensor | None:
        """Attention mask (S A, 1, L): -inf for padding cells, else 0; None without padding."""
        if self.full:
            return None
        mask = torch.zeros(self.token_mask.shape, device=self.batch.device)
        mask = mask.masked_fill(~self.token_mask, -torch.inf)  # (S, L)
        return mask.repeat_interleave(self.heads, 0)[:, None]

    def split(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split packed qkv (T, 3 A D) into query, key and value, each (S A, L, D)."""
        return ToHeads.apply(qkv, self)

    def join(self, context: Tensor) -> Tensor:
        """Convert the context of all heads to packed tokens: (S A, L, D) -> (T, A D)."""
        return FromHeads.apply(context, self)

    def to_grid(self, rows: Tensor) -> Tensor:
        """Reshape rows of the grid: (S A L, D) -> (S A, L, D)."""
        return rows.view(self.rows * self.heads, self.columns, -1)

    def to_tokens(self, grid: Tensor) -> Tensor:
        """Gather packed tokens: (S A, L, D) -> (T, A D), with zeros for padding tokens."""
        cells = grid.reshape(-1, grid.shape[-1])  # (S A L, D)
        rows = cells.new_empty(self.tokens * self.heads, cells.shape[1])
        torch.index_select(cells, 0, self.token_rows, out=rows[: len(self.token_rows)])
        rows[len(self.token_rows) :] = 0
        return rows.view(self.tokens, -1)


def round_up(number: int, multiple: int) -> int:
    """Round up to a multiple of `multiple`."""
    return -(-number // multiple) * multiple


class ToHeads(torch.autograd.Function):
    """Packed tokens -> heads. Autograd would add gradients of rows; this backward copies them."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, layout: AttentionLayout) -> tuple[Tensor, ...]:
        ctx.layout = layout
        rows = qkv.reshape(layout.tokens * 3 * layout.heads, -1)
        return tuple(layout.to_grid(rows.index_select(0, source)) for source in layout.qkv_rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # Padding cells have no gradient: they are masked as keys and never read as queries.
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
        rows = grad.reshape(layout.tokens * layout.heads, -1)[: len(layout.token_rows)]  # (T A, D)
        cells = layout.rows * layout.heads * layout.columns
        grid = rows.new_zeros(cells, rows.shape[1]).index_copy(0, layout.token_rows, rows)
        return layout.to_grid(grid), None


def explicit_attention(qkv: Tensor, layout: AttentionLayout, dropout: Dropout) -> Tensor:
    """Compute softmax(q k^T / sqrt(D)) v explicitly (Vaswani et al., 2017, Eq. 1)."""
    query, key, value = layout.split(qkv)  # each (S A, L, D)
    mask = query.new_zeros(1, 1, 1) if layout.mask is None else layout.mask.to(query.dtype)
    scale = 1 / math.sqrt(query.shape[-1])
    scores = torch.baddbmm(mask, query, key.transpose(1, 2), alpha=scale)  # (S A, L, L)
    return layout.join(torch.bmm(dropout(scores.softmax(-1)), value))


def sdpa_attention(qkv: Tensor, layout: AttentionLayout) -> Tensor:
    """Compute attention with PyTorch's fused kernel on the padded grid."""
    shape = (layout.rows, layout.heads, layout.columns, -1)
    query, key, value = (part.view(shape) for part in layout.split(qkv))  # (S, A, L, D)
    mask = None
    if layout.mask is not None:
        mask = layout.mask.view(layout.rows, layout.heads, 1, -1).to(query.dtype)
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return layout.join(context.flatten(0, 1))


def has_varlen(qkv: Tensor, heads: int) -> bool:
    """Return whether flash attention applies: 16-bit, head width 8 to 256, Ampere or newer."""
    half = qkv.dtype in (torch.bfloat16, torch.float16)
    width = qkv.shape[1] // (3 * heads)
    fits = width % 8 == 0 and width <= 256
    return half and fits and torch.cuda.get_device_capability(qkv.device) >= (8, 0)


def varlen_attention(qkv: Tensor, layout: AttentionLayout) -> Tensor:
    """Compute attention on the packed tokens with flash attention (Dao, 2023), without a grid."""
    from torch.nn.attention.varlen import varlen_attn

    query, key, value = qkv.view(layout.tokens, 3, layout.heads, -1).unbind(1)  # (T, A, D)
    ends = layout.batch.boundaries
    longest = layout.columns
    context = varlen_attn(query, key, value, ends, ends, longest, longest)
    assert isinstance(context, Tensor)
    return context.flatten(1)  # (T, A D)
