"""A local web page for trying the heads of a run and searching the sentences of a file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h11
import numpy as np
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from serving.mining import nearest
from serving.model import MultiTaskModel

ACCEPTED = 16  # length of the queue of connections that wait to be accepted
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


PAGE = Path(__file__).with_name("demo.html")
LONGEST = 5000  # characters of a text
BODY = 64 * 1024  # bytes of a request
TITLES = {"sst": "Sentiment", "qqp": "Paraphrase", "sts": "Similarity"}
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)


class PredictRequest(BaseModel):
    """A task and its one or two texts."""

    task: str
    texts: list[str] = Field(min_length=1, max_length=2)


class SearchRequest(BaseModel):
    """A query, and the number of sentences to return."""

    query: str = Field(min_length=1, max_length=LONGEST)
    top: int = Field(default=5, ge=1, le=50)


@dataclass(frozen=True)
class Corpus:
    """Sentences to search, with embeddings of unit length (n, H)."""

    name: str
    sentences: list[str]
    embeddings: np.ndarray


class BusyError(Exception):
    """Raised when the queue of waiting requests is full."""


class InvalidRequestError(Exception):
    """An invalid request; the message is sent to the client."""


class Queue:
    """A queue of at most `longest` requests, of which one runs at a time."""

    def __init__(self, longest: int) -> None:
        self.longest, self.waiting, self.turn = longest, 0, asyncio.Lock()

    async def __call__(self, work: Callable[[], Any]) -> Any:
        if self.waiting >= self.longest:
            raise BusyError
        self.waiting += 1
        try:
            async with self.turn:
                return await run_in_threadpool(work)
        finally:
            self.waiting -= 1


def make_app(
    model: MultiTaskModel,
    corpus: Corpus | None = None,
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost"),
    queue: int = 8,
) -> FastAPI:
    """Build the application: the page at `/`, and its JSON API `/about`, `/predict`, `/similar`.

    At most `queue` requests wait or run; further ones get status 503. Only requests for `hosts`
    are accepted, so that pages of other sites cannot send any.
    """
    app, turn = FastAPI(docs_url=None, redoc_url=None, openapi_url=None), Queue(queue)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    add_refusals(app)

    @app.get("/", response_class=HTMLResponse)
    def page() -> HTMLResponse:
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(PAGE.read_text("utf-8"), headers=headers)

    @app.get("/about")
    def about() -> dict[str, Any]:
        tasks = [
            {"name": name, "title": TITLES.get(name, name), "texts": task.texts}
            for name, task in model.tasks_by_name.items()
        ]
        searched = None if corpus is None else {"name": corpus.name, "size": len(corpus.sentences)}
        return {"tasks": tasks, "corpus": searched}

    @app.post("/predict")
    async def predict(request: PredictRequest) -> dict[str, Any]:
        check(model, request)
        texts: Any = [tuple(request.texts)] if len(request.texts) == 2 else request.texts
        found = (await turn(lambda: model.predict(texts, [request.task])))[request.task]
        shares = [] if found.probabilities is None else found.probabilities[0].tolist()
        scores = [{"name": n, "share": s} for n, s in zip(found.class_names, shares, strict=True)]
        return {"label": found.labels[0], "value": float(found.values[0]), "classes": scores}

    @app.post("/similar")
    async def similar(request: SearchRequest) -> dict[str, Any]:
        if corpus is None:
            raise InvalidRequestError("expected a demo started with --input, found none")
        check_text("query", request.query)
        rows, cosines = await turn(lambda: search(model, corpus, request))
        return {
            "found": [
                {"sentence": corpus.sentences[row], "row": int(row) + 1, "cosine": float(cosine)}
                for row, cosine in zip(rows[0], cosines[0], strict=True)
            ]
        }

    return app


def check(model: MultiTaskModel, request: PredictRequest) -> None:
    """Raise InvalidRequestError in one line for a request that the model cannot answer."""
    task = model.tasks_by_name.get(request.task)
    if task is None:
        raise InvalidRequestError(
            f"task: expected {', '.join(model.tasks)}, found {request.task[:40]!r}"
        )
    if len(request.texts) != task.texts:
        raise InvalidRequestError(
            f"texts: expected {task.texts} for {task.name}, found {len(request.texts)}"
        )
    for text in request.texts:
        check_text("texts", text)


def search(model: MultiTaskModel, corpus: Corpus, request: SearchRequest) -> tuple[Any, Any]:
    query = model.model.bi_encoder.encode([request.query], normalize=True)
    return nearest(corpus.embeddings, query, request.top)


def check_text(name: str, text: str) -> None:
    """Raise InvalidRequestError for a text that is blank, too long or not valid Unicode."""
    found = len(text.strip())
    if not found or len(text) > LONGEST:
        raise InvalidRequestError(f"{name}: expected 1 to {LONGEST} characters, found {found}")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidRequestError(f"{name}: expected Unicode text, found half a surrogate pair")


def add_refusals(app: FastAPI) -> None:
    """Add handlers that answer an invalid request with a one-line message in JSON."""

    @app.middleware("http")
    async def limit(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        length = request.headers.get("content-length")
        if "transfer-encoding" in request.headers:  # its length is unknown
            return refusal(411, "expected only a Content-Length, found Transfer-Encoding")
        if request.method == "POST" and (length is None or not length.isdecimal()):
            return refusal(411, "expected a Content-Length, found none")
        if length is not None and length.isdecimal() and int(length) > BODY:
            return refusal(413, f"expected at most {BODY} bytes, found {length}")
        return await call_next(request)

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return refusal(422, "expected JSON, found something else")
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return refusal(422, f"{place or 'request'}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def nothing(request: Request, error: HTTPException) -> JSONResponse:
        return refusal(error.status_code, f"{request.url.path[:60]}: {error.detail}")

    @app.exception_handler(InvalidRequestError)
    async def bad(request: Request, error: InvalidRequestError) -> JSONResponse:
        return refusal(422, str(error))

    @app.exception_handler(BusyError)
    async def busy(request: Request, error: BusyError) -> JSONResponse:
        return refusal(503, "busy: try again in a moment")


def refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)
