"""Whether an error says that memory is used up. No torch is imported here."""

from __future__ import annotations

SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


def out_of_memory(error: BaseException) -> bool:
    """MemoryError of Python and NumPy, and what PyTorch raises on a GPU and on a CPU."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in SIGNS)
