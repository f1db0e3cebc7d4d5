"""A local web page for trying the heads of a run and searching the sentences of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware

from serving.card import scores, settings
from serving.empty_texts import REASON
from serving.examples import examples_of
from serving.mining import nearest
from serving.model import MultiTaskModel
from serving.prediction import Prediction
from serving.refusals import BusyError, InvalidRequestError, add_refusals
from tasks.base import Task

PAGE = Path(__file__).with_name("demo.html")
LONGEST = 5000  # characters of a text
TITLES = {"sst": "Sentiment", "qqp": "Paraphrase", "sts": "Similarity"}
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)


MOST = 64  # rows of a batch


class PredictRequest(BaseModel):
    """One or two texts, and a task; without one, all tasks that can read them. Null is empty."""

    texts: list[str | None] = Field(min_length=1, max_length=2)
    task: str | None = None


class BatchRequest(BaseModel):
    """Rows of one or two texts each, and the tasks; without these, all that can read them."""

    rows: list[list[str | None]] = Field(min_length=1, max_length=MOST)
    tasks: list[str] | None = Field(default=None, min_length=1)


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


@dataclass(frozen=True)
class Run:
    """The name of the served run and its `metrics.json`, which is empty without one."""

    name: str = "a run"
    metrics: Mapping[str, Any] = field(default_factory=dict)


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
    run: Run | None = None,
    dev_examples: bool = True,
) -> FastAPI:
    """Build the application: the page at `/`, and its JSON API, described at `/openapi.json`.

    At most `queue` requests wait or run; further ones get status 503. Only requests for `hosts`
    are accepted, so that pages of other sites cannot send any. Without `dev_examples`, the page
    offers built-in texts instead of texts of the dev data.
    """
    app = FastAPI(title="Predictions for sentences", docs_url=None, redoc_url=None)
    turn, known = Queue(queue), about(model, corpus, run or Run(), dev_examples)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    add_refusals(app)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def page() -> HTMLResponse:
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(PAGE.read_text("utf-8"), headers=headers)

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Return the state of the server, the run and its tasks."""
        return {"status": "ok", "run": known["run"], "tasks": list(model.tasks)}

    @app.get("/about")
    def describe() -> dict[str, Any]:
        """Return the run's name, settings and scores, its tasks with examples, and the corpus."""
        return known

    @app.post("/predict")
    async def predict(request: PredictRequest) -> dict[str, Any]:
        """Return the answer of one task, or under `tasks` those of all that read such texts."""
        names = None if request.task is None else [request.task]
        (found,) = await answers([request.texts], names)
        return {"tasks": found} if request.task is None else found[request.task]

    @app.post("/batch")
    async def batch(request: BatchRequest) -> dict[str, Any]:
        """Return the answers by task for each of at most 64 rows, in their order."""
        return {"rows": await answers(request.rows, request.tasks)}

    async def answers(
        given: list[list[str | None]], tasks: list[str] | None
    ) -> list[dict[str, Any]]:
        rows = [[text or "" for text in row] for row in given]
        names = check(model, rows, tasks)
        texts: Any = [tuple(row) if len(row) > 1 else row[0] for row in rows]
        found = await turn(lambda: model.predict(texts, names))
        return [
            {name: answer(model.tasks_by_name[name], one, row) for name, one in found.items()}
            for row in range(len(rows))
        ]

    @app.post("/similar")
    async def similar(request: SearchRequest) -> dict[str, Any]:
        """Return the sentences of the corpus nearest to a query."""
        if corpus is None:
            raise InvalidRequestError("expected a demo started with --input, found none")
        check_text("query", request.query, least=1)
        rows, cosines = await turn(lambda: search(model, corpus, request))
        return {
            "found": [
                {"sentence": corpus.sentences[row], "row": int(row) + 1, "cosine": float(cosine)}
                for row, cosine in zip(rows[0], cosines[0], strict=True)
            ]
        }

    return app


def about(
    model: MultiTaskModel, corpus: Corpus | None, run: Run, dev_examples: bool = True
) -> dict[str, Any]:
    """Return what the page shows: the run and its card, the tasks with examples, the corpus."""
    examples = examples_of(model.config, model.tasks_by_name, dev_examples)
    tasks = [
        {
            "name": name,
            "title": TITLES.get(name, name),
            "texts": task.texts,
            "scale": scale(task),
            "examples": examples[name],
        }
        for name, task in model.tasks_by_name.items()
    ]
    encoder = Path(model.config.encoder).name
    return {
        "run": run.name,
        "settings": [
            ["encoder", encoder],
            ["tasks", " ".join(model.tasks)],
            *(row for row in settings(model) if row[1] != str(None)),
        ],
        "scores": scores(run.metrics) if "dev" in run.metrics else [],
        "tasks": tasks,
        "max_tokens": model.model.bi_encoder.tokenizer.max_tokens,
        "corpus": corpus and {"name": corpus.name, "size": len(corpus.sentences)},
    }


def scale(task: Task) -> list[float] | None:
    """Return the smallest and largest similarity as the task's files show them."""
    if task.output is None or task.output.scale is None:
        return None
    return [float(task.output.show(end)) for end in task.output.scale]


def answer(task: Task, found: Prediction, row: int) -> dict[str, Any]:
    """Return one prediction: label, value, the scale of similarities, the shares of classes.

    `cut` says that a text is longer than the encoder's limit, and that only its beginning counts.
    For an empty text that the task reads, label and value are None, and `reason` says why.
    """
    if found.empty[row]:
        nothing: dict[str, Any] = {"label": None, "value": None, "classes": [], "cut": False}
        return {**nothing, "scale": scale(task), "reason": REASON}
    shares = [] if found.probabilities is None else found.probabilities[row].tolist()
    classes = [{"name": n, "share": s} for n, s in zip(found.class_names, shares, strict=True)]
    return {
        "label": found.labels[row],
        "value": found.values[row].tolist(),  # one per label of a task with several labels
        "scale": scale(task),
        "classes": classes,
        "cut": bool(found.cut[row]),
        "reason": None,
    }


def check(
    model: MultiTaskModel, rows: Sequence[Sequence[str]], tasks: Sequence[str] | None
) -> list[str]:
    """Return the tasks of a request; raise InvalidRequestError in one line if it has no answer."""
    count = len(rows[0])
    for number, row in enumerate(rows, 1):
        place = "texts" if len(rows) == 1 else f"rows.{number}"
        if len(row) != count or count not in (1, 2):
            wanted = "1 or 2" if count not in (1, 2) else str(count)
            raise InvalidRequestError(f"{place}: expected {wanted} texts, found {len(row)}")
        for text in row:
            check_text(place, text, least=0)
    for name in tasks or ():
        if (task := model.tasks_by_name.get(name)) is None:
            raise InvalidRequestError(
                f"task: expected {', '.join(model.tasks)}, found {name[:40]!r}"
            )
        if count not in task.counts:
            expected = " or ".join(map(str, task.counts))
            raise InvalidRequestError(f"texts: expected {expected} for {name}, found {count}")
    known = {count for task in model.tasks_by_name.values() for count in task.counts}
    if tasks is None and count not in known:
        expected = " or ".join(map(str, sorted(known)))
        raise InvalidRequestError(
            f"texts: expected {expected} for {', '.join(model.tasks)}, found {count}"
        )
    # Beside a task of pairs, heads of single texts read the first text.
    return list(dict.fromkeys(tasks or model.readers(count)))


def search(model: MultiTaskModel, corpus: Corpus, request: SearchRequest) -> tuple[Any, Any]:
    query = model.model.bi_encoder.encode([request.query], normalize=True)
    return nearest(corpus.embeddings, query, request.top)


def check_text(name: str, text: str, least: int) -> None:
    """Raise InvalidRequestError for a text that is too short, too long or not valid Unicode."""
    found = len(text) if len(text) > LONGEST else len(text.strip())
    if not least <= found <= LONGEST:
        expected = f"{least} to {LONGEST} characters"
        raise InvalidRequestError(f"{name}: expected {expected}, found {found}")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidRequestError(f"{name}: expected Unicode text, found half a surrogate pair")
