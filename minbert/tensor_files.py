"""Tensors in a safetensors file."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from minbert.files import written_aside

OS_ERROR = re.compile(r"os error (\d+)")  # how the library reports a full disk


def save_tensors(
    tensors: Mapping[str, Tensor], file: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors (contiguous, on the CPU), whole or not at all.

    The file has the permissions of any new file; the library lets only the owner read its files.
    Raises OSError where the disk is full.
    """
    with written_aside(file) as new:
        new.touch()
        mode = new.stat().st_mode
        try:
            save_file(dict(tensors), new, metadata)
        except SafetensorError as error:
            number = OS_ERROR.search(str(error))
            code = int(number[1]) if number else errno.EIO
            reason = os.strerror(code) if number else str(error)
            raise OSError(code, reason, str(new)) from error
        new.chmod(mode & 0o777)
