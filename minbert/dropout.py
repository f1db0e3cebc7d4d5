"""Dropout from one seeded stream of random bytes.

PyTorch draws a float for every number and takes its generator from the process. Here a byte
decides, which is several times faster on a CPU, and the bytes of a pass through the encoder depend
on nothing but the stream's seed and the number of the pass: a pass can be repeated with the same
masks (gradient caching, adversarial noise), and a checkpoint needs one integer to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


class DropoutStream:
    """Random bytes for the dropout layers of one model.

    `passes` counts forward passes. Each begins with `next_pass` and draws its masks, in the order
    in which layers ask, from a generator of its own. The processes of one run share seed and
    passes; `rank` lets each draw masks of its own.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.passes, self.rank = seed, 0, 0
        self._cpu: np.random.SFC64 | None = None
        self._gpu: torch.Generator | None = None

    def next_pass(self) -> int:
        """Begin another forward pass; returns its number, for `replay`."""
        self.passes += 1
        self._cpu = self._gpu = None
        return self.passes

    @contextmanager
    def replay(self, number: int) -> Iterator[None]:
        """Let the next pass draw the masks of pass `number`, and go on afterwards as before."""
        before = self.passes, self._cpu, self._gpu
        self.passes = number - 1
        try:
            yield
        finally:
            self.passes, self._cpu, self._gpu = before

    def reset(self, seed: int) -> None:
        """Begin anew with this seed."""
        self.load_state_dict({"seed": seed, "passes": 0})

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "passes": self.passes}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed, self.passes = state["seed"], state["passes"]
        self._cpu = self._gpu = None

    def random_bytes(self, shape: torch.Size, device: torch.device) -> Tensor:
        """uint8 numbers of this shape."""
        if device.type == "cpu":
            if self._cpu is None:
                self._cpu = np.random.SFC64(self._entropy())
            words = self._cpu.random_raw((shape.numel() + 7) // 8)  # uint64
            return torch.from_numpy(words.view(np.uint8)[: shape.numel()]).view(shape)
        if self._gpu is None:
            seed = int(np.random.SeedSequence(self._entropy()).generate_state(1, np.uint64)[0])
            self._gpu = torch.Generator(device).manual_seed(seed >> 1)
        return torch.empty(shape, dtype=torch.uint8, device=device).random_(generator=self._gpu)

    def _entropy(self) -> tuple[int, ...]:
        return (self.seed, self.passes, self.rank) if self.rank else (self.seed, self.passes)


class Dropout(nn.Module):
    """Zero each number with probability p and rescale the others to keep the mean.

    p is rounded to a whole number of 256ths (0.1 -> 26/256), but not to 0 or 1, and the rescaling
    is that of the rounded p. The layers of a model share one `stream`; a layer that is given none
    has its own.
    """

    def __init__(self, p: float, stream: DropoutStream | None = None) -> None:
        super().__init__()
        self.p, self.stream = p, stream or DropoutStream()
        self.dropped = round(256 * p) if p in (0, 1) else min(255, max(1, round(256 * p)))

    @property
    def active(self) -> bool:
        return self.training and self.dropped > 0

    def forward(self, x: Tensor) -> Tensor:
        return x * self.mask(x).mul_(self.scale) if self.active else x

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """residual + dropout(x), without writing dropout(x)."""
        if not self.active:
            return residual + x
        return torch.addcmul(residual, x, self.mask(x), value=self.scale)

    @property
    def scale(self) -> float:
        """1 / (1 - p)."""
        return 256 / (256 - self.dropped) if self.dropped < 256 else 0.0

    def mask(self, x: Tensor) -> Tensor:
        """1 where a number stays, 0 where it goes; x's shape and type."""
        drawn = self.stream.random_bytes(x.shape, x.device)
        return (drawn >= self.dropped).to(x.dtype) if self.dropped < 256 else torch.zeros_like(x)
