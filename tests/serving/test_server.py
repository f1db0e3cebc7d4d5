"""The HTTP server: deadlines of requests, limits on connections, and small packets."""

import socket
from contextlib import ExitStack

import pytest
from background import in_background

from serving.server import ConnectionLimits, server_of

NEVER = 3600.0  # seconds: longer than any test
WAIT = 60  # seconds after which a server that does not answer fails the test
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALVES = {
    "nothing": b"",
    "half of the headers": REQUEST[:-4],
    "no body": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
    "half of the headers after an answer": REQUEST + REQUEST[:-4],
}


async def app(scope, receive, send):
    """Reads a request and answers with two bytes."""
    if scope["type"] == "http":
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if not message.get("more_body"):
                break
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


def served(limits):
    """The port of a server with these limits on this machine."""
    return in_background(server_of(app, limits))


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT)


def answer(connection):
    """All that comes before the server ends the connection."""
    return b"".join(iter(lambda: connection.recv(4096), b""))


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_unfinished_requests_time_out(sent, capsys):
    with served(ConnectionLimits(seconds=0.2)) as port, connect(port) as slow:
        slow.sendall(sent)
        assert answer(slow).endswith(
            b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
    assert capsys.readouterr().err == ""


def test_connections_above_the_limit_are_refused(capsys):
    with served(ConnectionLimits(connections=3, seconds=NEVER)) as port, ExitStack() as held:
        idle = [held.enter_context(connect(port)) for _ in range(3)]
        idle[0].sendall(REQUEST[:-2])
        for _ in range(20):
            with connect(port) as further:
                assert answer(further).startswith(b"HTTP/1.1 503 Service Unavailable")
        line = "WARNING:  3 connections are open: new ones are refused until one ends\n"
        assert capsys.readouterr().err == line
        idle[0].sendall(REQUEST[-2:])
        assert idle[0].recv(15) == b"HTTP/1.1 200 OK"
