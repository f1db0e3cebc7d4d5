"""Calls of compiled kernels: arrays of tensors, random bytes of dropout, and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from minbert.dropout import Dropout

TOKENS_PER_THREAD, SEQUENCES_PER_THREAD = 64, 4  # at least; fewer are not worth a thread
MOST_THREADS = 1024


@dataclass(frozen=True)
class DropoutBytes:
    """Random bytes of a dropout layer; an element is dropped if its byte is below `dropped`."""

    bytes: Tensor
    dropped: int
    rescale: np.float32

    @classmethod
    def draw(cls, dropout: Dropout, *shape: int) -> DropoutBytes:
        if not dropout.active:
            none = torch.empty((0,) * len(shape), dtype=torch.uint8, device="cpu")
            return cls(none, 0, np.float32(1))
        drawn = dropout.stream.random_bytes(torch.Size(shape), torch.device("cpu"))
        return cls(drawn, dropout.dropped, np.float32(dropout.scale))

    @property
    def values(self) -> tuple[np.ndarray, int, np.float32]:
        return self.bytes.numpy(), self.dropped, self.rescale


def array(tensor: Tensor) -> np.ndarray:
    """Return the array of a tensor in the form that kernels take: bfloat16 as int16 bits."""
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    found: np.ndarray = tensor.detach().numpy()
    return found


def on_sequences(kernel: Callable[..., None], rows: int, *values: object) -> None:
    """Call a kernel of the grid on `rows` sequences."""
    in_shares(kernel, rows, *values, least=SEQUENCES_PER_THREAD)


def in_shares(
    kernel: Callable[..., None],
    rows: int,
    *values: object,
    sums: tuple[int, ...] = (),
    least: int = TOKENS_PER_THREAD,
) -> np.ndarray:
    """Call a kernel on `rows` rows, shared among the threads that PyTorch uses here.

    With `sums`, the shape of the kernel's last argument, each share has its own; return their sum.
    A share has at least `least` rows.
    """
    shares = max(1, min(torch.get_num_threads(), rows // least))
    borders = [rows * share // shares for share in range(shares + 1)]
    found = np.empty((shares, *sums), np.float32)

    def call(share: int) -> None:
        last = (found[share],) if sums else ()
        kernel(borders[share], borders[share + 1], *values, *last)

    waiting = [helpers(os.getpid()).submit(call, share) for share in range(1, shares)]
    call(0)
    for one in waiting:
        one.result()
    return found[0] if shares == 1 else found.sum(0)


@cache
def helpers(process: int) -> ThreadPoolExecutor:
    """Return the pool of threads of a process; it starts as many as are needed at a time."""
    return ThreadPoolExecutor(MOST_THREADS)
