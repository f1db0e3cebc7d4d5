"""Attention kernels against a plain loop over sentences and heads in float64."""

import math

import pytest
import torch
from tolerances import assert_near, assert_near_in_norm

from minbert.attention import AttentionLayout, explicit_attention, sdpa_attention, varlen_attention
from minbert.batching import Batch
from minbert.dropout import Dropout

HEADS, WIDTH = 3, 8  # flash attention has no heads below this width
LENGTHS = [[5], [1, 1], [4, 4, 4], [2, 7, 1, 3], [130, 3], [200]]


def plain(qkv, lengths):
    """One sentence and one head at a time."""
    parts = []
    for rows in qkv.split(lengths):
        query, key, value = rows.view(-1, 3, HEADS, WIDTH).unbind(1)
        heads = []
        for head in range(HEADS):
            scores = query[:, head] @ key[:, head].T / math.sqrt(WIDTH)
            heads.append(scores.softmax(-1) @ value[:, head])
        parts.append(torch.cat(heads, 1))
    return torch.cat(parts)


def terms(lengths):
    """Additions: of a score, of the softmax, of the mean of values."""
    return WIDTH + 2 * max(lengths)


def inputs(lengths, dtype=torch.float32):
    batch = Batch(lengths=torch.tensor(lengths), ids=torch.zeros(sum(lengths), dtype=torch.long))
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(sum(lengths), 3 * HEADS * WIDTH, generator=generator)
    return qkv.to(dtype).requires_grad_(), AttentionLayout(batch, HEADS)


def fake_varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k):
    """What PyTorch's flash attention computes, with its signature; it runs only on GPUs."""
    assert cu_seq_q.dtype == torch.int32
    assert torch.equal(cu_seq_q, cu_seq_k)
    lengths = cu_seq_q.diff().tolist()
    assert max(lengths) == max_q == max_k
    rows = torch.stack([query, key, value], 1).flatten(1)
    return plain(rows, lengths).view(query.shape)


def explicit(qkv, layout):
    return explicit_attention(qkv, layout, Dropout(0.0))


@pytest.fixture
def varlen(monkeypatch):
    from torch.nn.attention import varlen

    monkeypatch.setattr(varlen, "varlen_attn", fake_varlen_attn)


@pytest.mark.numeric
@pytest.mark.parametrize("kernel", [explicit, sdpa_attention, varlen_attention])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_context_and_gradient_are_those_of_a_plain_loop(kernel, lengths, varlen):
    qkv, layout = inputs(lengths)
    weights = torch.randn(sum(lengths), HEADS * WIDTH, dtype=torch.float64)
    exact = qkv.detach().double().requires_grad_()
    expected = plain(exact, lengths)
    (expected * weights).sum().backward()
    found = kernel(qkv, layout)
    (found.double() * weights).sum().backward()
    assert_near(found, expected, terms(lengths))
    assert_near_in_norm(qkv.grad, exact.grad, 3 * terms(lengths))


@pytest.mark.numeric
@pytest.mark.parametrize("kernel", [explicit, sdpa_attention])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_padding_tokens_change_nothing(kernel, lengths):
    qkv, exact = inputs(lengths)
    rounded = AttentionLayout(exact.batch, HEADS, (64, 8))
    assert (rounded.tokens % 64, rounded.columns % 8) == (0, 0)
    filling = torch.randn(rounded.tokens - sum(lengths), qkv.shape[1])
    results = []
    for layout, more in ((exact, filling[:0]), (rounded, filling)):
        leaf = torch.cat([qkv.detach(), more]).requires_grad_()
        context = kernel(leaf, layout)
        assert not context[sum(lengths) :].any()
        context.square().sum().backward()
        assert not leaf.grad[sum(lengths) :].any()
        results.append((context[: sum(lengths)], leaf.grad[: sum(lengths)]))
    for expected, found in zip(*results, strict=True):
        assert_near(found, expected, 3 * terms(lengths))
