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
STS_HEADS = ("hidden", "cosine")
ALL = [
    *[("sst", {"head": head}) for head in ("hidden", "softmax")],
    *[("qqp", {"head": head}) for head in ("difference", "concat")],
    *[("sts", {"head": h, "activation": a}) for h in STS_HEADS for a in ACTIVATIONS],
    ("sts", {"pair": "joint"}),
]
CLASSIFIERS = [one for one in ALL if one[0] != "sts"]
SHAPES = {"sst": (B, 5), "qqp": (B, 2), "sts": (B,)}


def build(name: str, **options: str) -> torch.nn.Module:
    torch.manual_seed(3)
    return build_task(name, **options).build_head(H)


def embeddings(name: str, **options: str) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    count = build_task(name, **options).vectors
    return [torch.randn(B, H, generator=generator, requires_grad=True) for _ in range(count)]


def linear(layer: torch.nn.Linear, x: np.ndarray) -> np.ndarray:
    return x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


@pytest.mark.parametrize(("name", "options"), ALL)
def test_shapes_gradients_and_dropout(name, options):
    head, texts = build(name, **options), embeddings(name, **options)
    outputs = head(*texts)
    assert outputs.shape == SHAPES[name]
    outputs.square().sum().backward()
    for tensor in (*texts, *head.parameters()):
        assert torch.isfinite(tensor.grad).all()
    assert all(text.grad.abs().sum() > 0 for text in texts)
    dropout = [m.p for m in head.modules() if isinstance(m, Dropout)]
    cosine = name == "sts" and len(texts) == 2
    assert dropout == ([] if cosine else [HEAD_DROPOUT])
    assert torch.equal(head(*texts), head(*texts)) == cosine
    whole = head.eval()(*texts)
    assert torch.equal(head(*texts), whole)
    single = torch.cat([head(*[text[i : i + 1] for text in texts]) for i in range(B)])
    torch.testing.assert_close(single, whole)


@pytest.mark.parametrize(("name", "options"), CLASSIFIERS)
def test_classifiers_by_plain_formulas(name, options):
    head, texts = build(name, **options).eval(), embeddings(name)
    arrays = [text.detach().numpy() for text in texts]
    if options["head"] == "difference":
        arrays.append(abs(arrays[0] - arrays[1]))
    hidden = np.concatenate(arrays, 1)
    if options["head"] != "softmax":
        hidden = relu(linear(head.hidden, hidden))
    assert_near(head(*texts), linear(head.output, hidden), TERMS, scale=1.0)


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


def test_the_similarity_of_a_joint_pair():
    head, (text,) = build("sts", pair="joint").eval(), embeddings("sts", pair="joint")
    numbers = linear(head.output, relu(linear(head.hidden, text.detach().numpy())))[:, 0]
    assert_near(head(text), 5 / (1 + np.exp(-numbers)), TERMS, scale=5.0)
    far = torch.cat([1e6 * text, -1e6 * text])  # sigmoids of 0 and 1 stay on the scale
    assert ((head(far) >= 0) & (head(far) <= 5)).all()


def test_the_hidden_layer_of_the_similarity_starts_as_the_identity_and_takes_zeros():
    u, v = embeddings("sts")
    hidden, plain = (CosineSimilarity(H, 5, h, "none") for h in (True, False))
    torch.testing.assert_close(hidden(u, v), plain(u, v))
    torch.testing.assert_close(plain(u, v), plain(v, u))
    torch.testing.assert_close(plain(u, u), torch.full((B,), 5.0))
    torch.testing.assert_close(plain(u, -u), torch.full((B,), -5.0))
    zero = torch.zeros(2, H, requires_grad=True)
    value = hidden(zero, zero)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(zero.grad).all()
