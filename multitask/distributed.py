"""Several processes that take one step together (torchrun), or the one there is without it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.errors import UserError


class ProcessError(UserError):
    """Another process of the run went away."""


@dataclass(frozen=True)
class Processes:
    """This process among all of the run; alone, every exchange does nothing.

    Each batch is cut into one share a process. Gradients, losses and scores are added up over the
    processes, so that all of them take the same step, the one a single process would take.
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that prints and writes."""
        return self.rank == 0

    def share(self, rows: np.ndarray) -> np.ndarray:
        """This process' part of a batch's rows, perhaps none."""
        return rows[self.rank :: self.count]

    def joined_order(self, rows: np.ndarray) -> np.ndarray:
        """A batch's rows in the order in which `joined` has the processes' shares."""
        every = [Processes(rank, self.count) for rank in range(self.count)]
        return np.concatenate([one.share(rows) for one in every])

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over the processes."""
        return self._reduce(tensor, "SUM")

    def all_reduce_max(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its largest values over the processes."""
        return self._reduce(tensor, "MAX")

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether any process says so; `device` is where the processes exchange tensors."""
        if self.count == 1:
            return flag
        return bool(self.all_reduce_max(torch.tensor([int(flag)], device=device)))

    def _reduce(self, tensor: Tensor, how: str) -> Tensor:
        if self.count > 1 and tensor.numel():
            import torch.distributed as dist

            with told():
                dist.all_reduce(tensor, getattr(dist.ReduceOp, how))
        return tensor

    def joined(self, tensor: Tensor) -> Tensor:
        """The rows (n, H) of all processes, in their order; gradients go to this one's own."""
        found = self.gather(tensor.detach().cpu())
        found[self.rank] = tensor
        return torch.cat([part.to(tensor) for part in found])

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, in their order."""
        if self.count == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.count
        with told():
            dist.all_gather_object(values, value)
        return values

    @contextmanager
    def together(self) -> Iterator[None]:
        """Work that all processes do or none: an error in one ends all and is told once."""
        error = None
        try:
            yield
        except UserError as found:
            error = found
        self.agree(error)

    def agree(self, error: UserError | None) -> None:
        """End every process if one of them met an error, which the first one tells."""
        for found in self.gather(error):
            if found is not None:
                raise found if self.first else SystemExit(found.status)


@contextmanager
def told() -> Iterator[None]:
    """PyTorch's error for a process that is gone, in one line."""
    try:
        yield
    except RuntimeError as error:  # gloo's has no class of its own
        text = str(error).lower()
        if not any(word in text for word in ("connection", "closed", "peer", "timed out", "abort")):
            raise
        raise ProcessError(
            "expected all processes of the run to go on, found one gone; its own message says "
            f"why, and --resume goes on from the last checkpoint ({str(error).splitlines()[0]})"
        ) from error


@contextmanager
def process_group(device: str = "auto") -> Iterator[Processes]:
    """The processes that torchrun started, connected until the end; else this one alone.

    `device` is the run's: on GPUs each process has its own, which only `auto` or `cuda` can mean.
    """
    count = os.environ.get("WORLD_SIZE", "1")
    if count == "1":
        yield Processes()
        return
    if not (count.isdigit() and {"RANK", "LOCAL_RANK", "MASTER_ADDR"} <= os.environ.keys()):
        raise UserError(f"WORLD_SIZE: expected it from torchrun alone, found {count!r}")
    import torch.distributed as dist

    cuda = torch.cuda.is_available() and device != "cpu"
    if cuda:
        local = int(os.environ["LOCAL_RANK"])
        if device.startswith("cuda:"):
            raise UserError(f"--device: expected auto, cpu or cuda with torchrun, found {device}")
        if local >= torch.cuda.device_count():
            raise UserError(
                f"torchrun: expected at most {torch.cuda.device_count()} processes, a GPU each"
            )
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
