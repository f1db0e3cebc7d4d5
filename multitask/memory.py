"""Running out of memory, told with what to lower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from minbert.memory import out_of_memory
from multitask.config import RunConfig
from multitask.errors import RunError


@contextmanager
def memory_told(config: RunConfig) -> Iterator[None]:
    """RunError, with the flags that help, in the place of PyTorch's and Python's own errors."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        size = config.micro_batch or config.batch_size
        pieces = f"--micro-batch {size // 2}, a batch in pieces, " if size > 1 else ""
        raise RunError(
            f"out of memory with {size} examples at a time: a new run with {pieces}a lower "
            "--batch-size or a smaller --encoder needs less"
        ) from error
