"""SMART: noise on token vectors that changes the predictions most (Jiang et al., 2020).

Noise and vectors are packed: T tokens of B examples, (T, H). `owner` (T,) is the example of each
token. Both sentences of a pair belong to one example. Each has its own noise, and the inner step
follows one joint gradient. Packed batches have no padding tokens that could be perturbed.
"""

from __future__ import annotations

from collections.abc import Callable

from common.later import Tensor, torch

GUARD = 1e-6  # avoids division by zero; "epsilon" in the public implementations
TINY = 1e-38  # least norm of an example's noise or gradient, so that it can be a divisor


def adversarial_noise(
    divergence: Callable[[Tensor], Tensor],
    start: Tensor,
    owner: Tensor,
    *,
    variant: str = "normalised",
    steps: int = 1,
    step_size: float | Tensor = 1e-3,
    radius: float | Tensor = 1.0,
    norm: str = "inf",
    guard: float = GUARD,
) -> Tensor:
    """Return the detached noise (T, H) after `steps` gradient ascent steps on the divergence.

    `normalised` follows the public implementations: `step_size` times the unnormalised gradient is
    added, and each token's noise is then divided by its own norm plus `guard`. For any start, every
    token's noise ends with norm `radius`, which is 1 in those implementations.

    `projected` follows the paper (Algorithm 1): the gradient is divided by its norm over the whole
    example, a step has length `step_size`, and the noise is projected onto the ball of `radius`,
    per number for `inf` and per example for `l2`.

    Step size and radius are in the units of the vectors to which the noise is added.

    Args:
        divergence: maps noise (T, H) to a scalar distance from the predictions without noise.
        start: (T, H) random noise; at zero the divergence has no gradient.
        owner: (T,) example of each token, from 0, for `projected`.
        variant: `normalised` or `projected`.
        step_size, radius: one number, or one number per token (T, 1).
        norm: `inf` or `l2`.
    """
    if variant not in ("normalised", "projected") or norm not in ("inf", "l2"):
        raise ValueError(f"expected another variant or norm, found {variant!r} with {norm!r}")
    noise = start.detach()
    for _ in range(steps):
        leaf = noise.requires_grad_()
        (gradient,) = torch.autograd.grad(divergence(leaf), leaf)
        noise = noise.detach()
        if variant == "normalised":
            noise = noise + step_size * gradient
            noise = radius * noise / (token_norm(noise, norm) + guard)
        else:
            size = example_norm(gradient, owner, norm).clamp(min=TINY)
            noise = noise + step_size * gradient / size
            noise = project(noise, owner, radius, norm)
    return noise.detach()


def token_norm(noise: Tensor, norm: str) -> Tensor:
    """Return the norm of each token's noise (T, 1)."""
    return torch.linalg.vector_norm(noise, torch.inf if norm == "inf" else 2, -1, keepdim=True)


def example_norm(noise: Tensor, owner: Tensor, norm: str) -> Tensor:
    """Return, for each token, the norm of its whole example's noise (T, 1)."""
    tokens = token_norm(noise, norm).squeeze(-1)
    examples = tokens.new_zeros(int(owner.max()) + 1)
    if norm == "inf":
        return examples.scatter_reduce(0, owner, tokens, "amax")[owner, None]
    from minbert.pooling import add_rows  # which imports torch, unlike this file

    return add_rows(examples, owner, tokens.square()).sqrt()[owner, None]


def project(noise: Tensor, owner: Tensor, radius: float | Tensor, norm: str) -> Tensor:
    """Return the nearest noise within the ball."""
    if norm == "inf":
        bound = torch.as_tensor(radius, dtype=noise.dtype, device=noise.device)
        return noise.maximum(-bound).minimum(bound)
    return noise * (radius / example_norm(noise, owner, norm).clamp(min=TINY)).clamp(max=1)
