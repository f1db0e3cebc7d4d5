"""The server of a run's heads: a web page and a JSON interface, whose requests share passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware

from serving.answers import ServedRun, about, answer, embedding_answer
from serving.batching import Batcher
from serving.joined_passes import (
    AnyAnswer,
    AnyRequest,
    EmbeddingRequest,
    answers,
    prediction_request,
)
from serving.model import MultiTaskModel
from serving.refusals import add_refusals
from serving.request_models import (
    BatchRequest,
    EncodeRequest,
    PredictRequest,
    check,
    check_task_of,
    check_text,
)

PAGE = Path(__file__).with_name("page.html")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)


@dataclass(frozen=True)
class Load:
    """How requests are joined: tokens of a pass, seconds before the first pass, longest queue."""

    tokens: int = 8192
    wait: float = 0.002
    queue: int = 64


def make_app(
    model: MultiTaskModel,
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost"),
    run: ServedRun | None = None,
    dev_examples: bool = True,
    load: Load = Load(),
    precision: str = "fp32",
) -> FastAPI:
    """Build the application: the page at `/`, and its JSON interface, described at `/openapi.json`.

    Only requests for `hosts` are accepted, so that pages of other sites cannot send any. Without
    `dev_examples`, the page offers built-in texts instead of texts of the dev data.
    `precision` is that of the encoder: fp32 or bf16.
    """
    app = FastAPI(title="Predictions for sentences", docs_url=None, redoc_url=None)
    batcher = Batcher(
        partial(answers, model, precision=precision), load.tokens, load.wait, load.queue
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    add_refusals(app)
    add_information(app, about(model, run or ServedRun(), dev_examples))
    add_predictions(app, model, batcher)
    add_embeddings(app, model, batcher)
    return app


def add_information(app: FastAPI, known: dict[str, Any]) -> None:
    """Add the page and the routes that need no model."""

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def page() -> HTMLResponse:
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(PAGE.read_text("utf-8"), headers=headers)

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Return the state of the server, the run and its tasks."""
        tasks = [task["name"] for task in known["tasks"]]
        return {"status": "ok", "run": known["run"], "tasks": tasks}

    @app.get("/about")
    def describe() -> dict[str, Any]:
        """Return the run's name, settings and scores, and its tasks with examples."""
        return known


def add_predictions(
    app: FastAPI, model: MultiTaskModel, batcher: Batcher[AnyRequest, AnyAnswer]
) -> None:
    """Add the routes for predictions of the heads."""

    @app.post("/predict")
    async def predict(request: PredictRequest) -> dict[str, Any]:
        """Return the answer of one task, or under `tasks` those of all that read such texts."""
        names = None if request.task is None else [request.task]
        (found,) = await predicted([request.texts], names)
        return {"tasks": found} if request.task is None else found[request.task]

    @app.post("/batch")
    async def batch(request: BatchRequest) -> dict[str, Any]:
        """Return the answers by task for each of at most 64 rows, in their order."""
        return {"rows": await predicted(request.rows, request.tasks)}

    async def predicted(
        given: list[list[str | None]], tasks: list[str] | None
    ) -> list[dict[str, Any]]:
        rows = [tuple(text or "" for text in row) for row in given]
        names = check(model, rows, tasks)
        item = await run_in_threadpool(prediction_request, model, rows, names)
        found = await batcher(item)
        assert isinstance(found, dict)
        return [
            {name: answer(model.tasks_by_name[name], one, row) for name, one in found.items()}
            for row in range(len(rows))
        ]


def add_embeddings(
    app: FastAPI, model: MultiTaskModel, batcher: Batcher[AnyRequest, AnyAnswer]
) -> None:
    """Add the route for embeddings."""

    @app.post("/encode")
    async def encode(request: EncodeRequest) -> dict[str, Any]:
        """Return the embeddings of at most 64 texts, in their order."""
        check_task_of(model, request.task)
        texts = [text or "" for text in request.texts]
        for number, text in enumerate(texts, 1):
            check_text(f"texts.{number}", text, least=0)
        unit = model.model.bi_encoder.normalize if request.normalize is None else request.normalize
        tokens = await run_in_threadpool(model.model.bi_encoder.tokenizer, texts)
        vectors = await batcher(EmbeddingRequest(tokens, unit, request.task))
        assert isinstance(vectors, np.ndarray)
        return embedding_answer(texts, vectors, tokens.truncated)
