"""Data-parallel training with several processes (torchrun), or with a single one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.errors import UserError
from common.processes import several_processes


class ProcessError(UserError):
    """Another process of the run has ended."""


@dataclass(frozen=True)
class Processes:
    """The processes of a run, seen from this one; a single process exchanges nothing.

    Each batch is split into one share per process. Gradients, losses and scores are summed over the
    processes, so that all of them take the same step as a single process would.
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    def share(self, rows: np.ndarray) -> np.ndarray:
        """Return the share of this process in the rows of a batch; it may be empty."""
        return rows[self.rank :: self.count]

    def joined_order(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of a batch in the order of `joined`, process by process."""
        every = [Processes(rank, self.count) for rank in range(self.count)]
        return np.concatenate([one.share(rows) for one in every])

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over the processes."""
        return self._reduce(tensor, "SUM")

    def all_reduce_max(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its maximum over the processes."""
        return self._reduce(tensor, "MAX")

    def any(self, flag: bool, device: torch.device) -> bool:
        """Return whether `flag` is set in any process; tensors are exchanged on `device`."""
        if self.count == 1:
            return flag
        return bool(self.all_reduce_max(torch.tensor([int(flag)], device=device)))

    def _reduce(self, tensor: Tensor, how: str) -> Tensor:
        if self.count > 1 and tensor.numel():
            import torch.distributed as dist

            with ended_process_reported():
                dist.all_reduce(tensor, getattr(dist.ReduceOp, how))
        return tensor

    def joined(self, tensor: Tensor) -> Tensor:
        """Return the rows (n, H) of all processes in order; only its own rows get gradients."""
        found = self.gather(tensor.detach().cpu())
        found[self.rank] = tensor
        return torch.cat([part.to(tensor) for part in found])

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes, in order."""
        if self.count == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.count
        with ended_process_reported():
            dist.all_gather_object(values, value)
        return values

    @contextmanager
    def synchronized_errors(self) -> Iterator[None]:
        """Raise a UserError of this context in all processes; it is printed once."""
        error = None
        try:
            yield
        except UserError as found:
            error = found
        self.raise_everywhere(error)

    def raise_everywhere(self, error: UserError | None) -> None:
        """Raise the error of any process in all of them; the first one prints it."""
        for found in self.gather(error):
            if found is not None:
                found.printed_elsewhere = not self.first
                raise found


@contextmanager
def ended_process_reported() -> Iterator[None]:
    """Turn PyTorch's error for an ended process into a ProcessError."""
    try:
        yield
    except RuntimeError as error:  # gloo has no error class
        text = str(error).lower()
        if not any(word in text for word in ("connection", "closed", "peer", "timed out", "abort")):
            raise
        raise ProcessError(
            "expected all processes of the run to continue, found one ended; see its message; "
            f"--resume continues from the last checkpoint ({str(error).splitlines()[0]})"
        ) from error


# What torchrun sets for each process.
LAUNCHED = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def check_environment() -> None:
    """Raise UserError unless the variables have values as set by torchrun."""
    for key in LAUNCHED:
        value = os.environ.get(key)
        if value is None or (key != "MASTER_ADDR" and not value.isdigit()):
            raise UserError(f"{key}: expected a value set by torchrun, found {value!r}")


@cache
def shared_store(*launched: str) -> Any:
    """Return the key-value store of the processes, `launched` with these values of LAUNCHED.

    It is kept until the process ends: without torchrun, it is a server in the first process, to
    which others may be connected for their next run when the first one has not begun it.
    """
    import torch.distributed as dist

    store, _, _ = next(dist.rendezvous("env://"))
    return store


@contextmanager
def process_group(device: str = "auto") -> Iterator[Processes]:
    """Connect the processes that torchrun started; without torchrun, yield this single process.

    `device` is that of the run. It must be `auto` or `cuda` on GPUs, where each process has one. A
    group that the caller has initialised is used, and is left open.
    """
    if not several_processes():
        yield Processes()
        return
    check_environment()
    import torch.distributed as dist

    if dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size())
        return

    # Optimisers import it. Imported while a group exists, it keeps this group in the defaults of
    # its functions until the process ends, where the threads of gloo then abort it.
    import torch.distributed.nn

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
    store = shared_store(*(os.environ[key] for key in LAUNCHED))
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # Each group has keys of its own in the store: a second run in the same processes would find
    # those of the first one's connections.
    use = store.add(f"minbert groups of process {rank}", 1)
    dist.init_process_group(
        "nccl" if cuda else "gloo",
        store=dist.PrefixStore(f"minbert group {use}", store),
        rank=rank,
        world_size=world_size,
    )
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
