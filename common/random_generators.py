"""Independent random generators from the seed of a run."""

from zlib import crc32

import numpy as np


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Return an independent generator for a purpose and its numbers, such as epoch or pass."""
    return np.random.default_rng([seed, crc32(purpose.encode()), len(numbers), *numbers])
