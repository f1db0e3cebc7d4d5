"""A server of a run's heads: a page and a JSON interface, whose requests share passes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import h11
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from common.errors import RunError, UserError
from serving.card import scores, settings
from serving.model import MultiTaskModel
from serving.prediction import EMPTY_TEXT, Prediction, is_empty
from tasks.base import Task

PAGE = Path(__file__).with_name("page.html")
SECONDS = 10.0  # for a client to send a request, and to take its answer
CONNECTIONS = 64  # at most
BYTES = 8 * 1024**2  # of a request, at most: the longest batch in JSON with escaped emoji

Text = Annotated[str, Field(max_length=5000)] | None  # null is an empty text


class PredictRequest(BaseModel, extra="forbid"):
    """Rows of one or two texts each, and the tasks; without these, all that can read them."""

    rows: list[Annotated[list[Text], Field(min_length=1, max_length=2)]] = Field(
        min_length=1, max_length=64
    )
    tasks: list[str] | None = None


class EncodeRequest(BaseModel, extra="forbid"):
    """Texts to embed; `normalize` for unit length, and a task of a run with branches."""

    texts: list[Text] = Field(min_length=1, max_length=64)
    normalize: bool | None = None
    task: str | None = None


class Batcher:
    """Answers requests in one pass at a time: `run(rows, *kind)` for all that wait for this kind.

    What arrives during a pass shares the next one of its kind. An error of a pass is raised for
    each of its requests.
    """

    def __init__(self) -> None:
        self.waiting: dict[Any, list[tuple[Sequence[Any], asyncio.Future[list[Any]]]]] = {}
        self.pass_lock = asyncio.Lock()

    async def __call__(
        self, run: Callable[..., list[Any]], rows: Sequence[Any], *kind: Any
    ) -> list[Any]:
        """Return an answer for each row of a request."""
        answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault((run, kind), []).append((rows, answer))
        async with self.pass_lock:
            if not answer.done():  # no pass has taken it along
                await asyncio.shield(self.answer_all(run, kind))  # others wait for it, too
        return await answer

    async def answer_all(self, run: Callable[..., list[Any]], kind: Any) -> None:
        batch = self.waiting.pop((run, kind))
        try:
            every = [row for rows, _ in batch for row in rows]
            found = iter(await run_in_threadpool(run, every, *kind))
            for rows, answer in batch:
                part = [next(found) for _ in rows]
                if not answer.done():
                    answer.set_result(part)
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)


def make_app(
    model: MultiTaskModel,
    run: str = "a run",
    metrics: Mapping[str, Any] | None = None,
    hosts: Sequence[str] = ("127.0.0.1", "localhost"),
    precision: str = "fp32",
) -> FastAPI:
    """Build the application: the page at `/`, and its JSON interface, described at `/openapi.json`.

    `run` and its `metrics` are shown on the page. Only requests for `hosts` are accepted, so that
    pages of other sites cannot send any.
    """
    app = FastAPI(title="Predictions for sentences", docs_url=None, redoc_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    batcher, shared = Batcher(), model.model.bi_encoder

    def predicted(rows: Sequence[Sequence[str]], *names: str) -> list[dict[str, Any]]:
        found = model.predict_window(list(zip(*rows, strict=True)), names, precision)
        return [
            {name: answer(model.tasks_by_name[name], one, row) for name, one in found.items()}
            for row in range(len(rows))
        ]

    def embedded(texts: Sequence[str], task: str | None, normalize: bool) -> list[Any]:
        tokens, encoder = shared.tokenizer(texts), model.model.bi_encoder_of(task)
        vectors = encoder.encode_window(tokens, precision, normalize=normalize).tolist()
        return list(zip(vectors, tokens.truncated.tolist(), strict=True))

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE)

    @app.get("/about")
    def about() -> dict[str, Any]:
        """Return the run's name, settings and scores, and its tasks."""
        encoder = Path(model.config.encoder).name
        return {
            "run": run,
            "settings": [["encoder", encoder], ["tasks", " ".join(model.tasks)], *settings(model)],
            "scores": scores(metrics) if metrics and "dev" in metrics else [],
            "tasks": [{"name": n, "texts": task.texts} for n, task in model.tasks_by_name.items()],
            "max_tokens": shared.tokenizer.max_tokens,
        }

    @app.post("/predict")
    async def predict(request: PredictRequest) -> dict[str, Any]:
        """Return the answers by task for each of at most 64 rows, in their order."""
        if len({len(row) for row in request.rows}) > 1:
            raise RunError("rows: expected only texts or only pairs, found both")
        names = model.chosen(request.tasks, len(request.rows[0]))
        read = max(model.tasks_by_name[name].texts for name in names)
        rows = [[text or "" for text in row[:read]] for row in request.rows]
        return {"rows": await batcher(predicted, rows, *names)}

    @app.post("/encode")
    async def encode(request: EncodeRequest) -> dict[str, Any]:
        """Return the embeddings of at most 64 texts, in their order."""
        model.check_embeds_texts(request.task)
        unit = shared.normalize if request.normalize is None else request.normalize
        texts = [text or "" for text in request.texts]
        found = await batcher(embedded, texts, request.task, unit)
        vectors = [None if is_empty(t) else v for t, (v, _) in zip(texts, found, strict=True)]
        return {"embeddings": vectors, "cut": [cut for _, cut in found]}

    @app.middleware("http")
    async def limit(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        length = request.headers.get("content-length", "0")
        if int(length) > BYTES or "transfer-encoding" in request.headers:  # of unknown length
            return JSONResponse({"detail": f"expected a Content-Length up to {BYTES}"}, 413)
        return await call_next(request)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return JSONResponse({"detail": f"{place or 'request'}: {first['msg']}"}, 422)

    @app.exception_handler(UserError)
    async def unusable(_: Request, error: UserError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    return app


def answer(task: Task, found: Prediction, row: int) -> dict[str, Any]:
    """Return one prediction: label, value, the scale of similarities, the shares of classes.

    `cut` says that a text is longer than the limit, and that only a part of it was read.
    For an empty text that the task reads, label and value are None, and `reason` says why.
    """
    output, scale = task.output, None
    if output is not None and output.scale is not None:
        scale = [float(output.show(end)) for end in output.scale]
    if found.empty[row]:
        nothing: dict[str, Any] = {"label": None, "value": None, "classes": [], "cut": False}
        return {**nothing, "scale": scale, "reason": EMPTY_TEXT}
    shares = [] if found.probabilities is None else found.probabilities[row].tolist()
    classes = [{"name": n, "share": s} for n, s in zip(found.class_names, shares, strict=True)]
    return {
        "label": found.labels[row],
        "value": found.values[row].tolist(),  # one per label of a task with several labels
        "scale": scale,
        "classes": classes,
        "cut": bool(found.cut[row]),
        "reason": None,
    }


class DeadlineProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a deadline for sending a request, and for taking its answer.

    uvicorn itself waits forever for the rest of a request, and for a client that does not read.
    """

    timer: asyncio.TimerHandle | None = None

    def at_deadline(self, end: Callable[[], None]) -> None:
        """Call a function when the time from now on is over, in place of the one before."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.loop.call_later(SECONDS, end)

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.at_deadline(self.end_unfinished)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.flow.write_paused:
            self.at_deadline(self.end_unfinished)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.at_deadline(self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.at_deadline(self.end_unfinished)

    def end_unfinished(self) -> None:
        """End a connection without a complete request."""
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            if not self.transport.is_closing():
                line = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n"
                self.transport.write(line + b"\r\n")
                self.transport.close()
            self.at_deadline(self.transport.abort)  # of a client that does not take the line

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timer is not None:
            self.timer.cancel()


def server_of(app: Any) -> uvicorn.Server:
    """Return a server for an application; its `run(sockets=[...])` starts it."""
    limits: dict[str, Any] = {"limit_concurrency": CONNECTIONS, "http": DeadlineProtocol}
    # No WebSockets: the application has none, and they would have no deadline.
    return uvicorn.Server(uvicorn.Config(app, ws="none", log_level="warning", **limits))
