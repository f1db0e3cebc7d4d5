"""Independent passes in several threads, each of which computes with one core.

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
    # The number of cores is a setting of each thread, and the last one set is that of new threads.
    cores, workers = torch.get_num_threads(), min(threads, len(items))
    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                for future in futures:
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()
    finally:
        torch.set_num_threads(cores)
