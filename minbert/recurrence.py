"""An LSTM over packed sequences, both directions at a time, with its way back written out.

PyTorch's own loop records every step of time, and going back it fills a gradient as long as all
tokens for each of them. Here what does not wait for a later step is computed for all tokens at
once, and so is the gradient of the weights. For training on a CPU: on a GPU cuDNN has its own.

Letters of the shapes: T tokens, E their width, U units.
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


def both_directions(layer: nn.LSTM, hidden: Tensor, orders: Tensor, sizes: Tensor) -> Tensor:
    """Tokens (T, E) -> states of both directions (T, 2U), in float32 under autocast too.

    Args:
        layer: bidirectional, of one layer.
        orders: (2, T), the places of the tokens by steps of time of either direction.
        sizes: of how many sequences each step is; never more than the step before. On the CPU.
    """
    weight, across, bias, recurrent_bias = (
        torch.stack([getattr(layer, f"{name}_{way}") for way in ("l0", "l0_reverse")])
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    with torch.autocast(hidden.device.type, enabled=False):
        inputs = F.linear(hidden, weight.flatten(0, 1), (bias + recurrent_bias).flatten())
        return Recurrence.apply(inputs, across, orders, sizes.tolist())


def pytorch_states(layer: nn.LSTM, hidden: Tensor, orders: Tensor, sizes: Tensor) -> Tensor:
    """The same by PyTorch's own."""
    order = orders[0]
    states = layer(PackedSequence(hidden[order], sizes))[0].data
    return torch.empty_like(states).index_copy(0, order, states)


class Recurrence(torch.autograd.Function):
    """What the tokens add to the gates (T, 2 x 4U), weights (2, 4U, U) -> states (T, 2U).

    Gates are in PyTorch's order: input, forget, candidate, output. Inside, tokens lie step of time
    by step of time, (2, T, ...). There is no second derivative.
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
        # Of what goes into each gate: by the cell for three of them, by the state for the output's.
        slopes = [
            sigmoid_backward(candidate, admit),
            sigmoid_backward(remembered, forget),
            tanh_backward(admit, candidate),
            sigmoid_backward(squashed, output),
        ]
        into_gates = torch.stack(slopes, 2)  # (2, T, 4, U)
        onto_cells = tanh_backward(output, squashed)
        onto_states = by_steps(gradient, orders)
        state = cell = onto_states[:, :0]  # what the step after hands back
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
            # A product for each, for one of batches of matrices takes twice as long.
            of_weight = torch.stack([after.T @ before for after, before in pairs])
        return of_inputs, of_weight, None, None


def by_steps(tokens: Tensor, orders: Tensor) -> Tensor:
    """Both directions' halves of (T, 2N) -> (2, T, N), each in its order."""
    halves = zip(tokens.chunk(2, 1), orders, strict=True)
    return torch.stack([half[order] for half, order in halves])


def by_tokens(halves: Tensor, orders: Tensor) -> Tensor:
    """The way back: (2, T, N) -> (T, 2N)."""
    tokens = halves.new_empty(halves.shape[1], 2 * halves.shape[2])
    for into, half, order in zip(tokens.chunk(2, 1), halves, orders, strict=True):
        into[order] = half
    return tokens


def steps(sizes: Sequence[int]) -> Iterator[tuple[slice, slice | None]]:
    """The tokens of each step of time, and what lies before them: those of the step before."""
    before = begin = 0
    for number, size in enumerate(sizes):
        yield slice(begin, begin + size), slice(before, before + size) if number else None
        before, begin = begin, begin + size


def before_each(sizes: Sequence[int]) -> Tensor:
    """Of every token but those of the first step, its place's token in the step before."""
    counts = torch.tensor(sizes)
    return torch.arange(int(counts[0]), int(counts.sum())) - counts[:-1].repeat_interleave(
        counts[1:]
    )
