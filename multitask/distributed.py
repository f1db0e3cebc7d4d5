"""Data-parallel training with several processes (torchrun), or with a single one.

Each process computes its share of every batch. Gradients, losses and scores are summed over the
processes, so that all of them take the step that a single process would take.
"""

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from common.errors import UserError


@dataclass(frozen=True)
class Processes:
    """The processes of a run, seen from this one; a single process exchanges nothing."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over the processes."""
        if self.count > 1:
            exchange(dist.all_reduce, tensor)
        return tensor

    def joined(self, rows: Tensor, total: int) -> Tensor:
        """Return all `total` rows of a batch, of which this process has its share.

        A loss of the joined rows is computed in every process, divided by their number. Its
        gradient reaches the process' own rows, multiplied by that number again.
        """
        if self.count == 1:
            return rows
        whole = rows.new_zeros(total, *rows.shape[1:])
        whole[self.rank :: self.count] = rows.detach()
        self.all_reduce_sum(whole)
        own = rows.view_as(rows)
        if own.requires_grad:
            own.register_hook(lambda gradient: gradient * self.count)
        whole[self.rank :: self.count] = own
        return whole

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes, in order."""
        values = [value] * self.count
        if self.count > 1:
            exchange(dist.all_gather_object, values, value)
        return values

    @contextmanager
    def synchronized_errors(self) -> Iterator[None]:
        """Raise a UserError of this context in all processes."""
        own = None
        try:
            yield
        except UserError as error:
            own = error
        for found in filter(None, self.gather(own)):
            raise found


def exchange(call: Callable[..., Any], *arguments: Any) -> None:
    """Call a function of PyTorch; its error for an ended process becomes a UserError."""
    try:
        call(*arguments)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise UserError(
            "another process of the run has ended; read its message. "
            f"--resume continues from the last checkpoint ({reason})"
        ) from error


def connected_processes(device: str = "auto") -> Processes:
    """Return the processes that torchrun started, connected until this one ends.

    Without torchrun, return this single process. On GPUs each process has one: `device`, that of
    the run, is then `auto` or `cuda`. A group that the caller has initialised is used.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return Processes()
    if not dist.is_initialized():
        cuda = torch.cuda.is_available() and device != "cpu"
        if cuda and device not in ("auto", "cuda"):
            raise UserError(f"--device: write auto, cpu or cuda with torchrun, not {device}")
        if cuda and int(os.environ["LOCAL_RANK"]) >= (count := torch.cuda.device_count()):
            raise UserError(f"torchrun: start at most {count} processes, one for each GPU")
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        try:
            dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
        except ValueError as error:  # a variable that torchrun sets is missing or wrong
            raise UserError(f"start several processes with torchrun: {error}") from error
        atexit.register(dist.destroy_process_group)
    return Processes(dist.get_rank(), dist.get_world_size())
