"""A server of a run's heads: a page and a JSON interface."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock, Timer
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from common.errors import RunError, UserError, one_line
from serving.card import scores, settings
from serving.model import MultiTaskModel
from serving.prediction import EMPTY_TEXT, Prediction, is_empty
from tasks.base import Task

PAGE = Path(__file__).with_name("page.html")
SECONDS = 10.0  # for a client to send a request, and to take its answer
BYTES = 8 * 1024**2  # of a request, at most: the longest batch in JSON with escaped emoji

Text = Annotated[str, Meta(max_length=5000)] | None  # null is an empty text
Row = Annotated[list[Text], Meta(min_length=1, max_length=2)]


class PredictRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Rows of one or two texts each, and the tasks; without these, all that can read them."""

    rows: Annotated[list[Row], Meta(min_length=1, max_length=64)]
    tasks: list[str] | None = None


class EncodeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Texts to embed; `normalize` for unit length, and a task of a run with branches."""

    texts: Annotated[list[Text], Meta(min_length=1, max_length=64)]
    normalize: bool | None = None
    task: str | None = None


class Service:
    """The answers of a run. `run` and its `metrics` are shown on the page."""

    def __init__(
        self,
        model: MultiTaskModel,
        run: str = "a run",
        metrics: Mapping[str, Any] | None = None,
        precision: str = "fp32",
    ) -> None:
        self.model, self.run, self.metrics, self.precision = model, run, metrics, precision
        self.shared, self.lock = model.model.bi_encoder, Lock()

    def about(self) -> dict[str, Any]:
        """Return the run's name, settings and scores, and its tasks."""
        model, metrics = self.model, self.metrics
        encoder = Path(model.config.encoder).name
        return {
            "run": self.run,
            "settings": [["encoder", encoder], ["tasks", " ".join(model.tasks)], *settings(model)],
            "scores": scores(metrics) if metrics and "dev" in metrics else [],
            "tasks": [{"name": n, "texts": task.texts} for n, task in model.tasks_by_name.items()],
            "max_tokens": self.shared.tokenizer.max_tokens,
        }

    def predict(self, body: bytes) -> dict[str, Any]:
        """Return the answers by task for each of at most 64 rows, in their order."""
        request = msgspec.json.decode(body, type=PredictRequest)
        if len({len(row) for row in request.rows}) > 1:
            raise RunError("rows: expected only texts or only pairs, found both")
        names = self.model.chosen(request.tasks, len(request.rows[0]))
        read = max(self.model.tasks_by_name[name].texts for name in names)
        rows = [[text or "" for text in row[:read]] for row in request.rows]
        columns = list(zip(*rows, strict=True))
        found = self.in_turn(self.model.predict_window, columns, names, self.precision)
        tasks = self.model.tasks_by_name
        return {
            "rows": [
                {name: answer(tasks[name], one, row) for name, one in found.items()}
                for row in range(len(rows))
            ]
        }

    def encode(self, body: bytes) -> dict[str, Any]:
        """Return the embeddings of at most 64 texts, in their order."""
        request = msgspec.json.decode(body, type=EncodeRequest)
        self.model.check_embeds_texts(request.task)
        unit = self.shared.normalize if request.normalize is None else request.normalize
        texts = [text or "" for text in request.texts]
        tokens, encoder = self.shared.tokenizer(texts), self.model.model.bi_encoder_of(request.task)
        found = self.in_turn(encoder.encode_window, tokens, self.precision, normalize=unit)
        vectors = zip(texts, found.tolist(), strict=True)
        embeddings = [None if is_empty(text) else vector for text, vector in vectors]
        return {"embeddings": embeddings, "cut": tokens.truncated.tolist()}

    def in_turn(self, compute: Callable[..., Any], *given: Any, **settings: Any) -> Any:
        """Compute the answer to one request at a time; raise RuntimeError if that fails."""
        with self.lock:
            try:
                return compute(*given, **settings)
            except UserError as error:
                raise RuntimeError(str(error)) from error


def answer(task: Task, found: Prediction, row: int) -> dict[str, Any]:
    """Return one prediction: label, value, index of the class, scale, the probabilities of classes.

    `cut` says that a text is longer than the limit, and that only a part of it was read.
    For an empty text that the task reads, label and value are None, and `reason` says why.
    """
    output, scale = task.output, None
    if output is not None and output.scale is not None:
        scale = [float(output.show(end)) for end in output.scale]
    if found.empty[row]:
        nothing = dict.fromkeys(("label", "value", "index"))
        return {**nothing, "scale": scale, "classes": [], "cut": False, "reason": EMPTY_TEXT}
    shares = [] if found.probabilities is None else found.probabilities[row].tolist()
    classes = [
        {"name": n, "probability": s} for n, s in zip(found.class_names, shares, strict=True)
    ]
    return {
        "label": found.labels[row],
        "value": found.values[row].tolist(),  # one per label of a task with several labels
        "index": None if found.index is None else int(found.index[row]),
        "scale": scale,
        "classes": classes,
        "cut": bool(found.cut[row]),
        "reason": None,
    }


class Handler(BaseHTTPRequestHandler):
    """Answers the one request of a connection.

    A client has `SECONDS` to send its request, and as long to take the answer.
    """

    server: Server
    disable_nagle_algorithm, late = True, False

    def setup(self) -> None:
        super().setup()
        self.deadline = Timer(SECONDS, self.end_request)
        self.deadline.daemon = True
        self.deadline.start()

    def end_request(self) -> None:
        """Let reading find the end of a request that is not complete."""
        self.late = True
        with suppress(OSError):  # the client has gone
            self.connection.shutdown(socket.SHUT_RD)

    def do_GET(self) -> None:
        about = self.server.service.about
        self.respond({"/": lambda _: PAGE.read_bytes(), "/about": lambda _: about()})

    def do_POST(self) -> None:
        service = self.server.service
        self.respond({"/predict": service.predict, "/encode": service.encode})

    def respond(self, routes: Mapping[str, Callable[[bytes], Any]]) -> None:
        """Answer a request with the function of its route, the page or JSON."""
        status, content = self.result(routes)
        kind = "text/html; charset=utf-8" if isinstance(content, bytes) else "application/json"
        body = content if isinstance(content, bytes) else msgspec.json.encode(content)
        self.connection.settimeout(SECONDS)  # of all bytes of an answer
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if status == 413:  # a client that is still sending would not see the answer
            self.connection.shutdown(socket.SHUT_WR)
            while not self.late and self.rfile.read1(1 << 16):
                pass

    def result(self, routes: Mapping[str, Callable[[bytes], Any]]) -> tuple[int, Any]:
        """Return the status, and the content of the answer."""
        host, path = self.headers.get("Host", ""), self.path.partition("?")[0]
        length = self.headers.get("Content-Length", "0")
        if not {"*", host.partition(":")[0].lower()} & {*self.server.hosts}:
            return refusal(400, f"Host: expected {' or '.join(self.server.hosts)}, found {host}")
        if path not in routes:
            return refusal(404, f"expected {' or '.join(routes)}, found {path}")
        sized = length.isdecimal() and len(length) < 10 and "Transfer-Encoding" not in self.headers
        if not sized or int(length) > BYTES:
            return refusal(413, f"expected a Content-Length up to {BYTES}")
        body = self.rfile.read(int(length))
        self.deadline.cancel()
        if self.late or len(body) < int(length):
            return refusal(408, f"expected the whole request within {SECONDS:g} seconds")
        try:
            return 200, routes[path](body)
        except (UserError, msgspec.DecodeError, UnicodeError) as error:
            return refusal(422, str(error))
        except Exception as error:
            return refusal(500, str(error))

    def log_message(self, *message: object) -> None:
        """Print nothing."""


def refusal(status: int, line: str) -> tuple[int, dict[str, str]]:
    return status, {"detail": one_line(line)}


class Server(ThreadingMixIn, TCPServer):
    """Serves a run at an address, one thread for each connection, until `serve_forever` ends.

    Only requests for `hosts` are accepted, so that pages of other sites cannot send any.
    """

    daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

    def __init__(
        self,
        address: tuple[str, int],
        service: Service,
        hosts: Sequence[str] = ("127.0.0.1", "localhost"),
    ) -> None:
        super().__init__(address, Handler)
        self.service, self.hosts = service, hosts

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # of a client that has gone
            super().handle_error(request, client_address)
