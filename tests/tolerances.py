"""How far apart two results of the same sums may be, from their type and their length.

An addition is rounded by at most u = eps / 2 of its result. In a sum of n terms the errors add up
to at most n u, as a share of the terms' magnitude sum |a_i b_i|, and that only if all have the same
sign. Independent errors add up to about sqrt(n) u (Higham and Mary, 2019, A New Approach to
Probabilistic Rounding Error Analysis). Taken as uniform between -u and u, each has a standard
deviation of u / sqrt(3), their sum one of u sqrt(n / 3), and the difference of two results that
were rounded independently one of u sqrt(2 n / 3). `rounding` is six of these.

Sums of sums, as in the layers of an encoder, count with all additions on the way of one number:
relative errors of successive stages add up in the same manner, unless a stage magnifies those
before it. A test of such a stage gives the factor as `scale`.
"""

import math

import numpy as np
import torch

from minbert.config import AnyConfig, BiLSTMConfig
from serving import MultiTaskModel

DEVIATIONS = 6


def rounding(terms: int, dtype: torch.dtype = torch.float32) -> float:
    """Bound on the difference of two sums of `terms` terms, as a share of the terms' magnitude."""
    return DEVIATIONS * math.sqrt(2 * terms / 3) * torch.finfo(dtype).eps / 2


def assert_near(found, expected, terms: int, scale: float | None = None) -> None:
    """Every number is within `rounding(terms)` of `scale`, by default the largest expected one."""
    found, expected = wide(found), wide(expected)
    assert found.shape == expected.shape
    scale = np.abs(expected).max() if scale is None else scale
    atol = rounding(terms) * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol, equal_nan=False)


def assert_near_in_norm(found, expected, terms: int, scale: float = 1.0) -> None:
    """The same of the norm of the whole difference, for numbers of very different magnitude.

    `scale` is by how much a stage on the way magnifies relative errors.
    """
    found, expected = wide(found), wide(expected)
    assert found.shape == expected.shape
    difference = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert difference <= rounding(terms) * scale


def wide(numbers) -> np.ndarray:
    """A tensor, an array or a list in float64."""
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().cpu()
    return np.asarray(numbers, np.float64)


def encoder_terms(config: AnyConfig, tokens: int) -> int:
    """Additions on the way of one number through an encoder, at most `tokens` a sequence.

    Pooling, a mean over the tokens, is among them.
    """
    if isinstance(config, BiLSTMConfig):
        width = max(config.embedding_size, config.hidden_size)
        return config.num_layers * (width + tokens * (config.units + 2)) + tokens
    width, inner = config.hidden_size, config.intermediate_size
    norm = 2 * width  # mean and variance
    # Queries, keys and values; scores; softmax and mean of the values; output.
    attention = width + width // config.num_heads + 2 * tokens + width
    return norm + config.num_layers * (attention + norm + width + inner + norm) + tokens


def model_terms(model: MultiTaskModel) -> int:
    """The same for a loaded run and texts of any length."""
    config = model.model.bi_encoder.encoder.config
    return encoder_terms(config, config.max_tokens)


def gradient_terms(config: AnyConfig, tokens: int) -> int:
    """The same there and back, of a batch of `tokens`.

    Back, each product of the way there is two; a weight's gradient is a sum over the tokens.
    """
    return 3 * encoder_terms(config, tokens) + tokens
