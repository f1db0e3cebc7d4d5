"""Dropout: its rate, its scale, and masks that depend only on seed and pass."""

import peer_models
import pytest
import torch

from minbert.batching import pack
from minbert.dropout import Dropout, DropoutStream


@pytest.mark.parametrize("p", [0.1, 0.5, 0.001, 0.999])
def test_rate_and_mean_are_those_of_the_rounded_probability(p):
    layer = Dropout(p, DropoutStream(3))
    x = torch.ones(1000, 997, requires_grad=True)
    y = layer(x)
    rate = min(255, max(1, round(256 * p))) / 256
    assert abs(rate - p) <= 1 / 256
    n = x.numel()
    assert abs((y == 0).double().mean().item() - rate) < 5 * (rate * (1 - rate) / n) ** 0.5
    kept = y[y != 0]
    assert kept.unique().numel() == 1
    assert kept[0].item() == pytest.approx(1 / (1 - rate), rel=1e-6)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    layer.eval()
    assert layer(x) is x
    assert torch.equal(layer.add(x, x), x + x)
    assert Dropout(0.0)(x) is x


def test_adding_to_a_residual_is_dropout_and_a_sum():
    x, residual = torch.randn(9, 5, requires_grad=True), torch.randn(9, 5, requires_grad=True)
    one, other = Dropout(0.4, DropoutStream(1)), Dropout(0.4, DropoutStream(1))
    found, expected = one.add(residual, x), residual + other(x)
    torch.testing.assert_close(found, expected)
    for a, b in zip(
        torch.autograd.grad(found.square().sum(), (x, residual)),
        torch.autograd.grad(expected.square().sum(), (x, residual)),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def masks(stream, device="cpu"):
    shapes = [torch.Size((3, 5)), torch.Size((7,)), torch.Size((2, 2, 2))]
    return [stream.random_bytes(shape, torch.device(device)) for shape in shapes]


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_masks_depend_only_on_seed_pass_and_process():
    stream = DropoutStream(5)
    first_number, first = stream.next_pass(), masks(stream)
    second = [stream.next_pass() and None, *masks(stream)][1:]
    assert not equal(first, second)
    with stream.replay(first_number):
        stream.next_pass()
        assert equal(masks(stream), first)
    after = masks(stream)  # the pass goes on where the replay came
    stream.next_pass()
    third = masks(stream)
    assert not equal(third, first)
    assert not equal(third, second)
    again = DropoutStream()
    again.load_state_dict({"seed": 5, "passes": 2})
    again.next_pass()
    assert equal(masks(again), third)
    assert again.state_dict() == stream.state_dict() == {"seed": 5, "passes": 3}
    replica = DropoutStream(5)
    replica.load_state_dict({"seed": 5, "passes": 1})
    replica.next_pass()
    assert equal(masks(replica), second)
    assert equal(masks(replica), after)
    for other, rank in ((DropoutStream(6), 0), (DropoutStream(5), 1)):
        other.rank = rank
        other.next_pass()
        assert not equal(masks(other), first)


def test_the_layers_of_an_encoder_share_one_stream(tiny):
    encoder = tiny.encoder
    streams = {id(m.stream) for m in encoder.modules() if isinstance(m, Dropout)}
    assert streams == {id(encoder.stream)}
    tokens = tiny.tokenizer(peer_models.SENTENCES)
    batch = pack([tokens], torch.arange(len(tokens)).numpy())
    before = torch.get_rng_state()
    encoder.stream.reset(1)
    encoder.train()
    first, second = encoder(batch), encoder(batch)
    assert not torch.equal(first, second)
    with encoder.stream.replay(1):
        assert torch.equal(encoder(batch), first)
    assert encoder.stream.state_dict() == {"seed": 1, "passes": 2}
    encoder.eval()
    assert torch.equal(encoder(batch), encoder(batch))
    assert encoder.stream.passes == 2  # evaluation begins no pass
    assert torch.equal(torch.get_rng_state(), before)  # PyTorch's own generator has no part in it


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_masks_on_a_gpu_can_be_repeated():
    stream = DropoutStream(5)
    stream.next_pass()
    first = masks(stream, "cuda")
    with stream.replay(1):
        stream.next_pass()
        assert equal(masks(stream, "cuda"), first)
