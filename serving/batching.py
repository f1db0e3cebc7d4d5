"""Requests of several clients, joined into passes of the model: dynamic batching."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool

from serving.refusals import BusyError


class Sized(Protocol):
    """A request with a number of tokens."""

    @property
    def tokens(self) -> int: ...


Item = TypeVar("Item", bound=Sized)
Answer = TypeVar("Answer")


class Batcher(Generic[Item, Answer]):
    """Answers requests in passes of `run(items)`, one pass at a time, in the order of arrival.

    A pass takes requests up to `budget` tokens in all, at least one. The first pass after a pause
    begins after `wait` seconds, so that requests of the same moment share it; each further one
    takes what has arrived during the pass before. At most `longest` requests wait or run; further
    ones raise BusyError. If a pass fails, each of its requests is run separately, so that only
    those fail that cause it.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Sequence[Answer]],
        budget: int,
        wait: float,
        longest: int,
    ) -> None:
        self.run, self.budget, self.wait, self.longest = run, budget, wait, longest
        self.queue: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self.unanswered = 0
        self.worker: asyncio.Task[None] | None = None

    async def __call__(self, item: Item) -> Answer:
        """Return the answer to a request; raise what `run` raises for it."""
        if self.unanswered >= self.longest:
            raise BusyError
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.queue.append((item, future))
        self.unanswered += 1
        if self.worker is None or self.worker.done():
            self.worker = asyncio.create_task(self.work())
        try:
            return await future
        finally:
            self.unanswered -= 1

    async def work(self) -> None:
        """Run passes until no request waits."""
        await asyncio.sleep(self.wait)
        while self.queue:
            batch = self.next_batch()
            outcomes = await run_in_threadpool(self.outcomes, [item for item, _ in batch])
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if future.done():  # cancelled
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    def next_batch(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        """Take the requests of the next pass from the queue."""
        batch = [self.queue.popleft()]
        left = self.budget - batch[0][0].tokens
        while self.queue and (left := left - self.queue[0][0].tokens) >= 0:
            batch.append(self.queue.popleft())
        return batch

    def outcomes(self, items: Sequence[Item]) -> list[Answer | Exception]:
        """Return the answer or the error of each request."""
        try:
            return list(self.run(items))
        except Exception as error:
            if len(items) == 1:
                return [error]
            return [outcome for item in items for outcome in self.outcomes([item])]
