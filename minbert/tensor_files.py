"""Files of tensors, checked: each name once, weights floating-point and finite."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from minbert.errors import EncoderError, UserError


def read_tensors(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    Raises `error_class` where the file is damaged or missing, or has a name twice: of two tensors
    of one name the library returns the last.
    """
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
            # NaN is both the smallest and the largest: one pass, no array of the same size.
            for number in map(float, tensor.float().aminmax()):
                if not isfinite(number):
                    raise error_class(f"{file}: {name!r}: expected finite numbers, found {number}")
