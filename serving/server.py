"""An HTTP server with limits: connections, and time of a request."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

ACCEPTED = 64  # length of the queue of connections that wait to be accepted
UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # states of a client whose request is not complete
RESPONSE = "HTTP/1.1 {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass
class ConnectionLimits:
    """The maximum number of connections, and of seconds for the headers and body of a request.

    `reported` is true after a refused connection was logged, until all connections have ended.
    """

    connections: int = 64
    seconds: float = 10.0
    reported: bool = False


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a deadline for each request and a limit on connections.

    uvicorn itself waits forever for the rest of a request: its `limit_concurrency` counts only
    connections that have sent a request, `timeout_keep_alive` applies only after a response.
    """

    def __init__(self, limits: ConnectionLimits, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.limits = limits
        self.deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        if len(self.connections) >= self.limits.connections:
            self.transport = transport
            self.refuse("503 Service Unavailable")
            if not self.limits.reported:
                self.limits.reported = True
                logging.getLogger("uvicorn.error").warning(
                    "%d connections are open: new ones are refused until one ends",
                    self.limits.connections,
                )
            return
        # asyncio does this only for sockets that name TCP, which those of create_server do not:
        # the second packet of an answer would wait 40 ms for the client's acknowledgement.
        connection = transport.get_extra_info("socket")
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self.expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.forget_deadline()
        if not self.connections:
            self.limits.reported = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.expect_request()

    def expect_request(self) -> None:
        """Start the deadline for the next complete request."""
        self.forget_deadline()
        self.deadline = self.loop.call_later(self.limits.seconds, self.check_request)

    def check_request(self) -> None:
        if self.conn.their_state in UNFINISHED and not self.transport.is_closing():
            self.refuse("408 Request Timeout")

    def forget_deadline(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def refuse(self, status: str) -> None:
        self.transport.write(RESPONSE.format(status).encode())
        self.transport.close()


def server_of(app: Any, limits: ConnectionLimits | None = None) -> uvicorn.Server:
    """Return a server for an application; its `run(sockets=[...])` starts it."""
    protocol = partial(LimitedProtocol, limits or ConnectionLimits())
    # No WebSockets: the application has none, and they would not be counted.
    config = uvicorn.Config(app, http=protocol, ws="none", backlog=ACCEPTED, log_level="warning")
    return uvicorn.Server(config)
