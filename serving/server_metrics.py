"""Metrics of the server in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class ServerMetrics:
    """Counts of requests by route and status, of their seconds, and of passes of the model."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.intervals: dict[str, list[int]] = {}  # by route: requests between two bounds
        self.seconds: dict[str, float] = {}  # by route, in all
        self.passes, self.joined, self.tokens = 0, 0, 0

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered after some seconds."""
        self.requests[route, status] += 1
        counts = self.intervals.setdefault(route, [0] * (len(BOUNDS) + 1))
        counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds

    def count_pass(self, requests: int, tokens: int) -> None:
        """Count a pass of the model for some requests with some tokens in all."""
        self.passes += 1
        self.joined += requests
        self.tokens += tokens

    def text(self, waiting: int) -> str:
        """Return all metrics; `waiting` is the number of requests that wait or run."""
        return "".join(f"{line}\n" for line in self.lines(waiting))

    def lines(self, waiting: int) -> Iterator[str]:
        yield from heading("requests_total", "counter", "Answered requests.")
        for (route, status), count in sorted(self.requests.items()):
            yield f'minbert_requests_total{{route="{route}",status="{status}"}} {count}'
        yield from heading("request_seconds", "histogram", "Time from request to answer.")
        for route, counts in sorted(self.intervals.items()):
            name = "minbert_request_seconds"
            for bound, count in zip((*BOUNDS, "+Inf"), accumulate(counts), strict=True):
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {count}'
            yield f'{name}_sum{{route="{route}"}} {self.seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {sum(counts)}'
        yield from heading("waiting_requests", "gauge", "Requests that wait or run.")
        yield f"minbert_waiting_requests {waiting}"
        for name, text, value in (
            ("passes_total", "Passes of the model.", self.passes),
            ("pass_requests_total", "Requests in these passes.", self.joined),
            ("pass_tokens_total", "Tokens in these passes.", self.tokens),
        ):
            yield from heading(name, "counter", text)
            yield f"minbert_{name} {value}"


def heading(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP minbert_{name} {text}"
    yield f"# TYPE minbert_{name} {kind}"
