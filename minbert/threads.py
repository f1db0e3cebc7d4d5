"""Independent passes in parallel threads, one core per thread.

Between the products of a pass, cores that share it wait for each other, and much longer if another
process uses one of them. Passes that share nothing do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
STARTING = Lock()


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> Iterator[Result]:
    """Yield `function` of each item, in order; the calls run in `threads` threads of one core each.

    A single item, or `threads` = 1, is computed in the calling thread, with its number of cores.
    """
    if threads == 1 or len(items) <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        use_one_core(pool, min(threads, len(items)))
        futures = [pool.submit(function, item) for item in items]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def use_one_core(pool: ThreadPoolExecutor, workers: int) -> None:
    """Let the threads of a new pool compute with one core.

    PyTorch's number of cores is a setting of each thread; the last one set is also that of threads
    that use PyTorch for the first time later. It is restored as soon as all workers have theirs.
    """
    ready = Barrier(workers)

    def start() -> None:
        torch.get_num_threads()  # its first call would set the number of this thread later
        torch.set_num_threads(1)
        ready.wait()  # so that each worker starts once

    with STARTING:
        cores = torch.get_num_threads()
        try:
            for started in [pool.submit(start) for _ in range(workers)]:
                started.result()
        finally:
            torch.set_num_threads(cores)
