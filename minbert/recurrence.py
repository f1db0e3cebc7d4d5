"""An LSTM over packed sequences, both directions at once, with an explicit backward pass.

PyTorch's own loop records every time step, and its backward pass fills a gradient of all tokens'
length for each step. Here everything that does not depend on another time step, including the
gradient of the weights, is computed for all tokens at once. It is for CPUs; GPUs have cuDNN.

Shapes: T tokens, E width of a token, U units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence

sigmoid_backward = torch.ops.aten.sigmoid_backward  # (gradient, value) -> gradient
tanh_backward = torch.ops.aten.tanh_backward


def bidirectional_states(layer: nn.LSTM, hidden: Tensor, orders: Tensor, sizes: Tensor) -> Tensor:
    """Compute both directions' states (T, 2U) of tokens (T, E), in float32 even under autocast.

    Args:
        layer: bidirectional LSTM with one layer.
        orders: (2, T) token indices, sorted by time step, for each direction.
        sizes: number of sequences in each time step, non-increasing, on the CPU.
    """
    weight, across, bias, recurrent_bias = (
        torch.stack([getattr(layer, f"{name}_{way}") for way in ("l0", "l0_reverse")])
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    with torch.autocast(hidden.device.type, enabled=False):
        inputs = F.linear(hidden, weight.flatten(0, 1), (bias + recurrent_bias).flatten())
        return Recurrence.apply(inputs, across, orders, sizes.tolist())


def pytorch_states(layer: nn.LSTM, hidden: Tensor, orders: Tensor, sizes: Tensor) -> Tensor:
    """Compute the same states with PyTorch's LSTM."""
    order = orders[0]
    states = layer(PackedSequence(hidden[order], sizes))[0].data
    return torch.empty_like(states).index_copy(0, order, states)


class Recurrence(torch.autograd.Function):
    """Gate inputs of the tokens (T, 2 x 4U) and weights (2, 4U, U) -> states (T, 2U).

    Gates are in PyTorch's order: input, forget, candidate, output. Internal tensors (2, T, ...)
    are sorted by time step. There is no second derivative.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, orders: Tensor, sizes: Sequence[int]
    ) -> Tensor:
        gates, units = by_steps(inputs, orders), weight.shape[2]
        cells = gates.new_empty(*gates.shape[:2], units)
        squashed, states = torch.empty_like(cells), torch.empty_like(cells)
        across = weight.transpose(1, 2)
        for now, before in steps(sizes):
            gate = gates[:, now]
            if before is not None:
                gate.baddbmm_(states[:, before], across)
            gate[..., : 2 * units].sigmoid_()
            gate[..., 2 * units : 3 * units].tanh_()
            gate[..., 3 * units :].sigmoid_()
            admit, forget, candidate, output = gate.chunk(4, 2)
            cell = torch.mul(admit, candidate, out=cells[:, now])
            if before is not None:
                cell.addcmul_(forget, cells[:, before])
            torch.mul(output, torch.tanh(cell, out=squashed[:, now]), out=states[:, now])
        ctx.save_for_backward(gates, cells, squashed, states, weight, orders)
        ctx.sizes = sizes
        return by_tokens(states, orders)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        gates, cells, squashed, states, weight, orders = ctx.saved_tensors
        admit, forget, candidate, output = gates.chunk(4, 2)
        first, earlier = ctx.sizes[0], before_each(ctx.sizes)
        remembered = torch.zeros_like(cells)
        remembered[:, first:] = cells[:, earlier]
        # Derivatives by each gate's input: of the cell for three gates, of the state for the output
        slopes = [
            sigmoid_backward(candidate, admit),
            sigmoid_backward(remembered, forget),
            tanh_backward(admit, candidate),
            sigmoid_backward(squashed, output),
        ]
        into_gates = torch.stack(slopes, 2)  # (2, T, 4, U)
        onto_cells = tanh_backward(output, squashed)
        onto_states = by_steps(gradient, orders)
        state = cell = onto_states[:, :0]  # gradients from the next time step
        for now, before in reversed(list(steps(ctx.sizes))):
            own_state = onto_states[:, now]
            own_state[:, : state.shape[1]] += state
            own_cell = onto_cells[:, now].mul_(own_state)
            own_cell[:, : cell.shape[1]] += cell
            own = into_gates[:, now]
            own[:, :, :3] *= own_cell[:, :, None]
            own[:, :, 3] *= own_state
            if before is not None:
                state, cell = own.flatten(2).bmm(weight), own_cell * forget[:, now]
        flat = into_gates.flatten(2)
        of_inputs = of_weight = None
        if ctx.needs_input_grad[0]:
            of_inputs = by_tokens(flat, orders)
        if ctx.needs_input_grad[1]:
            pairs = zip(flat[:, first:], states[:, earlier], strict=True)
            # One product per direction: a batched product takes twice as long.
            of_weight = torch.stack([after.T @ before for after, before in pairs])
        return of_inputs, of_weight, None, None


def by_steps(tokens: Tensor, orders: Tensor) -> Tensor:
    """Sort both directions' halves of (T, 2N) by time step -> (2, T, N)."""
    halves = zip(tokens.chunk(2, 1), orders, strict=True)
    return torch.stack([half[order] for half, order in halves])


def by_tokens(halves: Tensor, orders: Tensor) -> Tensor:
    """Invert `by_steps`: (2, T, N) -> (T, 2N)."""
    tokens = halves.new_empty(halves.shape[1], 2 * halves.shape[2])
    for into, half, order in zip(tokens.chunk(2, 1), halves, orders, strict=True):
        into[order] = half
    return tokens


def steps(sizes: Sequence[int]) -> Iterator[tuple[slice, slice | None]]:
    """Yield the slices of each time step and of the previous one, which is None for the first."""
    before = begin = 0
    for number, size in enumerate(sizes):
        yield slice(begin, begin + size), slice(before, before + size) if number else None
        before, begin = begin, begin + size


def before_each(sizes: Sequence[int]) -> Tensor:
    """Return the index of the same sequence's previous token, for tokens after the first step."""
    counts = torch.tensor(sizes)
    return torch.arange(int(counts[0]), int(counts.sum())) - counts[:-1].repeat_interleave(
        counts[1:]
    )
