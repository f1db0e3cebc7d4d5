"""The demo's server: so many connections at a time, and so long for a request on each."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

ACCEPTED = 16  # connections taken at once, of those that wait
UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # what a client's side is in before its request is whole
ANSWER = "HTTP/1.1 {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Bounds:
    """The number of connections, and the seconds for headers and body of a request.

    `reported`: whether a refused connection was reported since the last time that all had ended.
    """

    connections: int = 64
    seconds: float = 10.0
    reported: bool = False


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP, which by itself waits without end for the rest of a request.

    Its `limit_concurrency` counts a connection only when it has sent a request, and
    `timeout_keep_alive` one that has had an answer.
    """

    def __init__(self, bounds: Bounds, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.bounds = bounds
        self.deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        if len(self.connections) >= self.bounds.connections:
            self.transport = transport
            self.refuse("503 Service Unavailable")
            if not self.bounds.reported:
                self.bounds.reported = True
                logging.getLogger("uvicorn.error").warning(
                    "%d connections are open: more are refused until one ends",
                    self.bounds.connections,
                )
            return
        super().connection_made(transport)
        self.expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.forget_deadline()
        if not self.connections:
            self.bounds.reported = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.expect_request()

    def expect_request(self) -> None:
        """From now on a whole request has to come in time."""
        self.forget_deadline()
        self.deadline = self.loop.call_later(self.bounds.seconds, self.check_request)

    def check_request(self) -> None:
        if self.conn.their_state in UNFINISHED and not self.transport.is_closing():
            self.refuse("408 Request Timeout")

    def forget_deadline(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def refuse(self, status: str) -> None:
        self.transport.write(ANSWER.format(status).encode())
        self.transport.close()


def server_of(app: Any, bounds: Bounds | None = None) -> uvicorn.Server:
    """The server of an application; `run(sockets=[...])` starts it."""
    protocol = partial(BoundedProtocol, bounds or Bounds())
    # No WebSocket: the application has none, and it would not be counted.
    config = uvicorn.Config(app, http=protocol, ws="none", backlog=ACCEPTED, log_level="warning")
    return uvicorn.Server(config)
