"""Heads: shapes, and formulas against a plain computation."""

import numpy as np
import pytest
import torch
from tolerances import assert_near

from minbert.dropout import Dropout
from tasks import build_task
from tasks.heads import ACTIVATIONS, HEAD_DROPOUT, CosineSimilarity

pytestmark = pytest.mark.numeric

B, H = 6, 8
TERMS = 4 * H  # of the longest sums: a layer of three embeddings' width, and one of H
SST_HEADS, QQP_HEADS, STS_HEADS = (
    ("hidden", "softmax"),
    ("difference", "concat"),
    ("hidden", "cosine"),
)
ALL = [
    *[("sst", {"head": head}) for head in SST_HEADS],
    *[("qqp", {"head": head}) for head in QQP_HEADS],
    *[("sts", {"head": h, "activation": a}) for h in STS_HEADS for a in ACTIVATIONS],
]
SHAPES = {"sst": (B, 5), "qqp": (B, 2), "sts": (B,)}


def build(name: str, **options: str) -> torch.nn.Module:
    torch.manual_seed(3)
    return build_task(name, **options).build_head(H)


def embeddings(name: str) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    count = 1 if name == "sst" else 2
    return [torch.randn(B, H, generator=generator, requires_grad=True) for _ in range(count)]


def linear(layer: torch.nn.Linear, x: np.ndarray) -> np.ndarray:
    return x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


@pytest.mark.parametrize(("name", "options"), ALL)
def test_shape_and_gradients(name, options):
    head, texts = build(name, **options), embeddings(name)
    outputs = head(*texts)
    assert outputs.shape == SHAPES[name]
    outputs.square().sum().backward()
    for text in texts:
        assert text.grad.abs().sum() > 0
    for parameter in head.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize(("name", "options"), ALL)
def test_one_example_gives_the_same_as_in_a_batch(name, options):
    head, texts = build(name, **options).eval(), embeddings(name)
    whole = head(*texts)
    alone = torch.cat([head(*[text[i : i + 1] for text in texts]) for i in range(B)])
    torch.testing.assert_close(alone, whole)


@pytest.mark.parametrize("options", [o for n, o in ALL if n != "sts"])
def test_dropout_works_in_training_only(options):
    name = "sst" if options["head"] in SST_HEADS else "qqp"
    head, texts = build(name, **options), embeddings(name)
    assert [m.p for m in head.modules() if isinstance(m, Dropout)] == [HEAD_DROPOUT]
    assert not torch.equal(head(*texts), head(*texts))
    head.eval()
    assert torch.equal(head(*texts), head(*texts))


@pytest.mark.parametrize("kind", SST_HEADS)
def test_sentiment_heads(kind):
    head, (text,) = build("sst", head=kind).eval(), embeddings("sst")
    hidden = text.detach().numpy()
    if kind == "hidden":
        hidden = relu(linear(head.hidden, hidden))
    assert_near(head(text), linear(head.output, hidden), TERMS, scale=1.0)


@pytest.mark.parametrize("kind", QQP_HEADS)
def test_paraphrase_heads(kind):
    head, texts = build("qqp", head=kind).eval(), embeddings("qqp")
    u, v = (text.detach().numpy() for text in texts)
    parts = [u, v, abs(u - v)] if kind == "difference" else [u, v]
    expected = linear(head.output, relu(linear(head.hidden, np.concatenate(parts, 1))))
    assert_near(head(*texts), expected, TERMS, scale=1.0)


PLAIN = {"relu": relu, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "none": lambda x: x}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", STS_HEADS)
def test_similarity_heads(kind, activation):
    head, texts = build("sts", head=kind, activation=activation), embeddings("sts")
    if kind == "hidden":
        torch.nn.init.normal_(head.hidden.weight)
        torch.nn.init.normal_(head.hidden.bias)
    sides = [text.detach().numpy() for text in texts]
    if kind == "hidden":
        sides = [linear(head.hidden, side) for side in sides]
    cosines = [
        float(u @ v / (np.linalg.norm(u) * np.linalg.norm(v))) for u, v in zip(*sides, strict=True)
    ]
    expected = 5 * PLAIN[activation](np.array(cosines))
    assert_near(head(*texts), expected, TERMS, scale=5.0)


def test_the_hidden_layer_of_the_similarity_starts_as_the_identity():
    u, v = embeddings("sts")
    hidden, plain = (CosineSimilarity(H, 5, h, "none") for h in (True, False))
    torch.testing.assert_close(hidden(u, v), plain(u, v))
    torch.testing.assert_close(plain(u, v), plain(v, u))
    torch.testing.assert_close(plain(u, u), torch.full((B,), 5.0))
    torch.testing.assert_close(plain(u, -u), torch.full((B,), -5.0))


def test_zero_embeddings_give_numbers():
    zero = torch.zeros(2, H, requires_grad=True)
    value = CosineSimilarity(H, 5, True, "relu")(zero, zero)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(zero.grad).all()
