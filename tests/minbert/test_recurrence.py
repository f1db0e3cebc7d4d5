"""The explicit recurrence against PyTorch's packed LSTM."""

import pytest
import torch
from torch import nn

from minbert.batching import Batch
from minbert.bilstm import by_time, random_bilstm
from minbert.config import BiLSTMConfig
from minbert.recurrence import bidirectional_states, pytorch_states

pytestmark = pytest.mark.numeric

LENGTHS = {
    "unsorted": [3, 7, 1, 5, 7],
    "of one length": [4, 4],
    "one token each": [1, 1, 1],
    "one sequence": [6],
}


def sequences(lengths, width=5):
    torch.manual_seed(0)
    lengths = torch.tensor(lengths)
    batch = Batch(lengths, torch.zeros(int(lengths.sum()), dtype=torch.long))
    tokens = torch.randn(len(batch.ids), width, dtype=torch.float64, requires_grad=True)
    layer = nn.LSTM(width, 4, bidirectional=True, dtype=torch.float64)
    return layer, tokens, *by_time(batch)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_states_and_all_gradients_are_pytorchs(lengths):
    layer, tokens, orders, sizes = sequences(lengths)
    found = bidirectional_states(layer, tokens, orders, sizes)
    expected = pytorch_states(layer, tokens, orders, sizes)
    torch.testing.assert_close(found, expected)
    wanted = [tokens, *layer.parameters()]
    onto = torch.randn_like(found)
    for one, other in zip(
        *(torch.autograd.grad((states * onto).sum(), wanted) for states in (found, expected)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_weights_that_are_not_trained_get_no_gradient():
    layer, tokens, orders, sizes = sequences([3, 5])
    (all_trained,) = torch.autograd.grad(
        bidirectional_states(layer, tokens, orders, sizes).sum(), tokens
    )
    layer.requires_grad_(False)
    bidirectional_states(layer, tokens, orders, sizes).sum().backward()
    torch.testing.assert_close(tokens.grad, all_trained)
    assert all(weight.grad is None for weight in layer.parameters())
    layer.requires_grad_(True)
    bidirectional_states(layer, tokens.detach(), orders, sizes).sum().backward()
    assert all(weight.grad is not None for weight in layer.parameters())


def test_an_encoder_is_the_same_with_and_without_gradients_and_autocast():
    encoder = random_bilstm(BiLSTMConfig(30, 5, 4, 2, dropout=0.0))
    lengths = torch.tensor([3, 7, 1])
    batch = Batch(lengths, torch.arange(int(lengths.sum())))
    trained = encoder(batch)  # ours
    with torch.inference_mode():
        torch.testing.assert_close(encoder(batch), trained.detach())  # PyTorch's
    with torch.autocast("cpu", torch.bfloat16):
        rounded = encoder(batch)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, trained, atol=0.01, rtol=0.1)
    rounded.sum().backward()
