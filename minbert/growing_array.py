"""An array that grows, in memory or in a temporary file."""

from __future__ import annotations

import mmap
from tempfile import TemporaryFile
from typing import IO

import numpy as np

IN_MEMORY = 1 << 25  # bytes; two million sentences need about four times as much


class GrowingArray:
    """An array of one type to which parts are appended.

    Above IN_MEMORY bytes, the numbers go to an unnamed temporary file, which is memory-mapped: the
    system keeps in memory only the parts in use. The file disappears with the array, or with the
    process if that ends first.
    """

    def __init__(self, dtype: type) -> None:
        self.dtype = dtype
        self.parts: list[np.ndarray] = []
        self.size = 0
        self.file: IO[bytes] | None = None

    def append(self, part: np.ndarray) -> None:
        self.size += part.nbytes
        self.parts.append(part.astype(self.dtype, copy=False))
        if self.size > IN_MEMORY:
            if self.file is None:
                self.file = TemporaryFile()  # noqa: SIM115 (open as long as it is mapped)
            for one in self.parts:
                self.file.write(one.tobytes())
            self.parts = []

    def array(self) -> np.ndarray:
        """Return all numbers; the array is read-only if it is memory-mapped."""
        if self.file is None:
            return np.concatenate(self.parts) if self.parts else np.zeros(0, self.dtype)
        self.file.flush()
        mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self.dtype)
