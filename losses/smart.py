"""SMART: noise on token vectors, led to where predictions react most (Jiang et al., 2020).

Noise and vectors are packed: T tokens of B examples, (T, H); `owner` (T,) says whose token each
is. Both sentences of a pair belong to one example, each with noise of its own, and the inner step
follows one joint gradient. There is no padding that could be perturbed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

NORMS = ("inf", "l2")
VARIANTS = ("normalised", "projected")
GUARD = 1e-6  # keeps a division from zero; the public implementations' "epsilon"


def adversarial_noise(
    divergence: Callable[[Tensor], Tensor],
    start: Tensor,
    owner: Tensor | None = None,
    *,
    variant: str = "normalised",
    steps: int = 1,
    step_size: float | Tensor = 1e-3,
    radius: float | Tensor = 1.0,
    norm: str = "inf",
    guard: float = GUARD,
) -> Tensor:
    """Noise (T, H) after `steps` steps up the divergence; detached.

    `normalised`, which the public implementations do: the gradient is added as it is, times
    `step_size`, and each token's noise then divided by its own norm plus `guard`. Whatever the
    start, every token's noise ends at norm `radius`, which is 1 in those implementations.

    `projected`, the paper's ball (Algorithm 1): the gradient is divided by its norm over the whole
    example, a step goes `step_size` far, and the noise is brought back within `radius`: each number
    for `inf`, each example's vector for `l2`.

    Step size and radius are lengths, in the units of the vectors that the noise is added to.

    Args:
        divergence: noise (T, H) -> scalar, how far predictions are from those without noise.
        start: (T, H) random noise; at zero the divergence has no gradient.
        owner: (T,) example of each token, from 0; for `projected`.
        step_size, radius: one number, or one for each token (T, 1).
    """
    noise = start.detach()
    for _ in range(steps):
        leaf = noise.requires_grad_()
        (gradient,) = torch.autograd.grad(divergence(leaf), leaf)
        noise = noise.detach()
        if variant == "normalised":
            noise = noise + step_size * gradient
            noise = radius * noise / (size(noise, norm) + guard)
        elif owner is None:
            raise ValueError("owner: expected the example of each token, found none")
        else:
            noise = noise + step_size * gradient / positive(example_size(gradient, owner, norm))
            noise = projected(noise, owner, radius, norm)
    return noise.detach()


def size(noise: Tensor, norm: str) -> Tensor:
    """Norm of each token's noise: (T, 1)."""
    return torch.linalg.vector_norm(
        noise, ord=float("inf") if norm == "inf" else 2, dim=-1, keepdim=True
    )


def example_size(noise: Tensor, owner: Tensor, norm: str) -> Tensor:
    """Norm of the noise of each token's whole example: (T, 1)."""
    tokens = size(noise, norm).squeeze(-1)
    found = tokens.new_zeros(int(owner.max()) + 1)
    if norm == "inf":
        return found.scatter_reduce(0, owner, tokens, "amax")[owner, None]
    return found.scatter_add(0, owner, tokens.square()).sqrt()[owner, None]


def projected(noise: Tensor, owner: Tensor, radius: float | Tensor, norm: str) -> Tensor:
    """The nearest noise within the ball."""
    if norm == "inf":
        bound = torch.as_tensor(radius, dtype=noise.dtype, device=noise.device)
        return noise.maximum(-bound).minimum(bound)
    return noise * (radius / positive(example_size(noise, owner, norm))).clamp(max=1)


def positive(numbers: Tensor) -> Tensor:
    """The numbers, kept from zero so that they can divide."""
    return numbers.clamp(min=torch.finfo(numbers.dtype).tiny)
