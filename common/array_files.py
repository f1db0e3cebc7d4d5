"""Files of arrays by name: .npz archives of NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.files import atomic_path, check_regular


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name as one .npz file, atomically."""
    with atomic_path(path) as new, new.open("xb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path, what: str, error_class: type[UserError]) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file; raise `error_class` if it does not hold `what`.

    Too little memory and errors of the disk are raised as they are: the file may be whole.
    """
    check_regular(path, error_class)
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise error_class(f"{path}: expected {what}, found no file") from None
    except Exception as error:  # a damaged archive raises many different classes
        if isinstance(error, MemoryError) or getattr(error, "errno", None):
            raise
        raise error_class(f"{path}: expected {what}: {error}") from error
