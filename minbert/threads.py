"""Independent passes in parallel threads, one core per thread.

Between the products of a pass, cores that share it wait for each other, and much longer if another
process uses one of them. Passes that share nothing do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> Iterator[Result]:
    """Yield `function` of each item, in order; the calls run in `threads` threads of one core each.

    A single item, or `threads` = 1, is computed in the calling thread, with its number of cores.
    """
    if threads == 1 or len(items) <= 1:
        yield from map(function, items)
        return
    cores = torch.get_num_threads()
    with ThreadPoolExecutor(min(threads, len(items)), initializer=use_one_core) as pool:
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(cores)  # the number set last is also that of later threads


def use_one_core() -> None:
    torch.get_num_threads()  # its first call would set the number of this thread later
    torch.set_num_threads(1)
