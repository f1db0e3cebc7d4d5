"""Files of tensors: atomic writing, checks for unique names and finite floating-point values."""

from __future__ import annotations

import errno
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from common.atomic_files import atomic_path, check_regular
from common.errors import EncoderError, UserError

OS_ERROR = re.compile(r"os error (\d+)")  # how the library reports a full disk


def save_tensors(
    tensors: Mapping[str, Tensor], file: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors (contiguous, on the CPU) atomically.

    The file has the usual permissions of a new file; safetensors gives access only to the owner.
    Raises OSError if the disk is full.
    """
    with atomic_path(file) as new:
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


def read_tensors(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file.

    Raises `error_class` if the file is damaged or missing, or has a name twice. The library itself
    returns the last of two tensors with the same name.
    """
    check_regular(file, error_class)
    try:
        tensors = load_file(file)
        with file.open("rb") as opened:
            size = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(size), object_pairs_hook=list)
    except (SafetensorError, OSError) as error:
        raise error_class(f"{file}: the weights cannot be read: {error}") from error
    name, times = Counter(name for name, _ in header).most_common(1)[0] if header else ("", 0)
    if times > 1:
        raise error_class(f"{file}: {name!r}: expected one tensor of this name, found {times}")
    return tensors


def check_weights(
    tensors: Mapping[str, Tensor], file: Path, error_class: type[UserError] = EncoderError
) -> None:
    """Raise `error_class` for a weight that is not floating-point, or not finite in float32."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            found = str(tensor.dtype).removeprefix("torch.")
            raise error_class(f"{file}: {name!r}: expected floating-point numbers, found {found}")
        if tensor.numel():
            # aminmax returns NaN if there is one: a single pass, without a mask of the same size.
            for number in map(float, tensor.float().aminmax()):
                if not isfinite(number):
                    raise error_class(f"{file}: {name!r}: expected finite numbers, found {number}")
