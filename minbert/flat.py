"""Long arrays of numbers that come part by part; the longest lie in a file, not in memory."""

from __future__ import annotations

import mmap
from tempfile import TemporaryFile
from typing import IO

import numpy as np

IN_MEMORY = 1 << 25  # bytes: two million sentences are about four times that


class Flat:
    """Numbers of one type, appended.

    Above IN_MEMORY bytes they go to a temporary file without a name, which is mapped: the system
    keeps in memory what is used and gives back what is not. It ends with the array, however the
    process ends.
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
        """All of them, read-only where they are mapped."""
        if self.file is None:
            return np.concatenate(self.parts) if self.parts else np.zeros(0, self.dtype)
        self.file.flush()
        mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self.dtype)
