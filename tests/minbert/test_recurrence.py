"""The written-out recurrence beside PyTorch's packed LSTM, and beside differences."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from minbert.batching import Batch
from minbert.bilstm import by_time
from minbert.recurrence import Recurrence, both_directions

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
    found = both_directions(layer, tokens, orders, sizes.tolist())
    packed = layer(PackedSequence(tokens[orders[0]], sizes))[0].data
    expected = packed[orders[0].argsort()]
    torch.testing.assert_close(found, expected)
    wanted = [tokens, *layer.parameters()]
    onto = torch.randn_like(found)
    for one, other in zip(
        *(torch.autograd.grad((states * onto).sum(), wanted) for states in (found, expected)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_the_way_back_is_that_of_differences():
    _, tokens, orders, sizes = sequences([2, 4, 1])
    inputs = torch.randn(len(tokens), 2 * 16, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 16, 4, dtype=torch.float64, requires_grad=True)

    def states(inputs, weight):
        return Recurrence.apply(inputs, weight, orders, sizes.tolist())

    assert torch.autograd.gradcheck(states, (inputs, weight))


def test_without_gradients_it_gives_the_same():
    layer, tokens, orders, sizes = sequences([3, 5])
    with torch.inference_mode():
        found = both_directions(layer, tokens.detach(), orders, sizes.tolist())
    expected = both_directions(layer, tokens, orders, sizes.tolist())
    torch.testing.assert_close(found, expected.detach(), rtol=0, atol=0)
