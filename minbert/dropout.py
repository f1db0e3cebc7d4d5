"""Dropout from one seeded stream of random bytes.

PyTorch draws one float per element from a global generator. Here one byte per element is drawn,
which is several times faster on a CPU. The bytes of a forward pass depend only on the seed, the
process and the number of the pass. A pass can therefore be repeated with the same masks (gradient
caching, adversarial noise), and a checkpoint stores only the seed and the number of passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


class DropoutStream:
    """Random bytes for the dropout layers of one model.

    `passes` counts forward passes. Each pass begins with `next_pass` and has its own generator,
    from which the layers draw their masks in turn. The processes of a run share seed and passes;
    `rank` gives each process different masks.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.passes, self.rank = seed, 0, 0
        self._cpu: np.random.SFC64 | None = None
        self._gpu: torch.Generator | None = None

    def next_pass(self) -> int:
        """Begin a new forward pass and return its number, for `replay`."""
        self.passes += 1
        self._cpu = self._gpu = None
        return self.passes

    @contextmanager
    def replay(self, number: int) -> Iterator[None]:
        """Repeat the masks of pass `number` in the next pass, and restore the state afterwards."""
        before = self.passes, self._cpu, self._gpu
        self.passes = number - 1
        try:
            yield
        finally:
            self.passes, self._cpu, self._gpu = before

    def reset(self, seed: int) -> None:
        """Restart the stream with this seed."""
        self.load_state_dict({"seed": seed, "passes": 0})

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "passes": self.passes}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed, self.passes = state["seed"], state["passes"]
        self._cpu = self._gpu = None

    def random_bytes(self, shape: torch.Size, device: torch.device) -> Tensor:
        """Draw uint8 numbers of this shape."""
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
    """Zero each element with probability p and rescale the others to keep the mean.

    p is rounded to a multiple of 1/256 (0.1 -> 26/256), but not to 0; the rescaling uses the
    rounded p. The layers of a model share one `stream`; a layer without one creates its own.
    """

    def __init__(self, p: float, stream: DropoutStream | None = None) -> None:
        super().__init__()
        self.p, self.stream = p, stream or DropoutStream()
        self.dropped = min(255, max(1, round(256 * p))) if p else 0

    @property
    def active(self) -> bool:
        return self.training and self.dropped > 0

    def forward(self, x: Tensor) -> Tensor:
        return x * self.mask(x).mul_(self.scale) if self.active else x

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """Return residual + dropout(x) without storing dropout(x).

        Without a graph and without dropout, the sum is stored in `x`.
        """
        if not self.active:
            return residual + x if torch.is_grad_enabled() else x.add_(residual)
        return torch.addcmul(residual, x, self.mask(x), value=self.scale)

    @property
    def scale(self) -> float:
        """1 / (1 - p)."""
        return 256 / (256 - self.dropped)

    def mask(self, x: Tensor) -> Tensor:
        """Draw a mask of x's shape and type: 1 keeps an element, 0 drops it."""
        drawn = self.stream.random_bytes(x.shape, x.device)
        return (drawn >= self.dropped).to(x.dtype)
