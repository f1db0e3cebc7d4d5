"""The server: its answers, refused requests, and deadlines."""

import json
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from tolerances import assert_near, model_terms

from common.errors import EncoderError
from serving.server import Server, Service

CLIENTS = 50
WAIT = 60  # seconds after which a server that does not answer fails the test
ROW = ["a cat", "a dog"]


@contextmanager
def running(service):
    """A server in a thread, to the end of the block; yield its port."""
    with Server(("127.0.0.1", 0), service) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def service(model):
    return Service(model, "my-run", {"dev": {"sst": {"accuracy": 0.5}}})


@pytest.fixture(scope="module")
def port(service):
    with running(service) as found:
        yield found


def ask(port, path, content=None, **headers):
    """Return the status and the content of an answer; `content` is posted as JSON."""
    connection = HTTPConnection("127.0.0.1", port, timeout=WAIT)
    method, body = ("GET", None) if content is None else ("POST", content)
    if not isinstance(body, bytes | None):
        body = json.dumps(body).encode()
    connection.request(
        method, path, body, {name.replace("_", "-"): v for name, v in headers.items()}
    )
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content) if "json" in answer.headers[
        "Content-Type"
    ] else content


def predicted(port, *rows, **more):
    status, found = ask(port, "/predict", {"rows": rows, **more})
    assert status == 200, found
    return found["rows"]


def check_rows(model, rows, found):
    """Each row has the predictions of the model for it, up to rounding."""
    for name, ours in model.predict(rows).items():
        answers = [row[name] for row in found]
        assert [one["label"] for one in answers] == ours.labels or name == "sts"
        if ours.probabilities is None:
            assert_near([one["value"] for one in answers], ours.values, model_terms(model))
        else:
            assert [one["value"] for one in answers] == ours.values.tolist()
            assert [one["index"] for one in answers] == ours.index.tolist()
            shares = np.array([[c["probability"] for c in one["classes"]] for one in answers])
            assert_near(shares, ours.probabilities, model_terms(model))


def test_answers_are_the_predictions_of_the_model(port, model):
    rows = [ROW, ["a sun", "the sun"]]
    found = predicted(port, *rows)
    check_rows(model, [tuple(row) for row in rows], found)
    assert found[0]["sts"]["scale"] == [0.0, 5.0]
    (single,) = predicted(port, ["a cat"], tasks=["sst"])
    check_rows(model, ["a cat"], [single])


@pytest.mark.parametrize("empty", ["", " \n", None])
def test_an_empty_text_has_null_and_a_reason_from_the_tasks_that_read_it(port, empty):
    whole, second, first = predicted(port, ROW, ["a cat", empty], [empty, "a dog"])
    assert [one["reason"] for one in whole.values()] == [None] * 4
    assert second["sst"] == whole["sst"]  # it reads the first text only
    for one in (second["qqp"], second["sts"], second["own"], *first.values()):
        assert (one["label"], one["value"], one["classes"]) == (None, None, [])
        assert one["reason"] == "empty text"
        assert one.keys() == whole["sst"].keys()


def test_a_text_above_the_limit_is_marked_for_the_tasks_that_read_it(port):
    limit = ask(port, "/about")[1]["max_tokens"]
    (found,) = predicted(port, ["a", "a " * (limit + 1)])
    cut = {name: one["cut"] for name, one in found.items()}
    assert cut == {"sst": False, "qqp": True, "sts": True, "own": True}


def test_embeddings_are_those_of_the_encoder(port, model):
    texts = ["A cat sleeps.", "", None, "The sun is up."]
    found = ask(port, "/encode", {"texts": texts})[1]
    assert [one is None for one in found["embeddings"]] == [False, True, True, False]
    assert found["cut"] == [False] * 4
    shown = found["embeddings"][0], found["embeddings"][3]
    assert_near(np.array(shown), model.encode([texts[0], texts[3]]), model_terms(model))
    unit = ask(port, "/encode", {"texts": ["A cat."], "normalize": True})[1]
    assert np.linalg.norm(unit["embeddings"][0]) == pytest.approx(1, abs=1e-6)


def test_the_page_and_what_it_shows(port):
    page = ask(port, "/")[1].decode()
    for part in ("<title>Sentences</title>", "only a part was read", "No prediction: ${reason}"):
        assert part in page
    found = ask(port, "/about")[1]
    assert found["run"] == "my-run"
    assert ["sst", "accuracy", "0.5000", ""] in found["scores"]
    assert ["encoder", "tiny"] in found["settings"]


def test_the_documented_requests_are_answered(port):
    page = (Path(__file__).parents[2] / "docs" / "use.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(import json\nfrom urllib.*?)```", page, re.DOTALL)
    exec(block.replace("alike", "sts").replace("8000", str(port)), {})  # another status raises


@pytest.mark.parametrize(
    ("path", "content", "headers", "status", "expected"),
    [
        ("/predict", {"tasks": ["mnli"], "rows": [ROW]}, {}, 422, "task: expected one of sst, qqp"),
        ("/predict", {"rows": [["x" * 5001]]}, {}, 422, "of length <= 5000 - at `$.rows[0][0]`"),
        ("/predict", {"rows": [["a"], ROW]}, {}, 422, "rows: expected only texts or only pairs"),
        ("/predict", {"rows": [ROW], "task": 1}, {}, 422, "unknown field `task`"),
        ("/predict", b'{"rows": [["\xff"]]}', {}, 422, "utf-8"),
        ("/predict", {"rows": [["x" * 9_000_000]]}, {}, 413, "up to 8388608"),
        ("/predict", b"{}", {"Transfer_Encoding": "chunked"}, 413, "Content-Length"),
        ("/encode", {"texts": ["a"], "task": "mnli"}, {}, 422, "task: expected one of sst, qqp"),
        ("/about", None, {"Host": "attacker.example"}, 400, "expected 127.0.0.1 or localhost"),
        ("/elsewhere", None, {}, 404, "expected / or /about, found /elsewhere"),
    ],
)
def test_invalid_requests_are_refused(port, path, content, headers, status, expected):
    found = ask(port, path, content, **headers)
    assert found[0] == status
    assert expected in found[1]["detail"]


def test_a_pass_that_fails_is_an_error_of_the_server(port, model, monkeypatch):
    def infinite(*more, **settings):
        raise EncoderError("expected finite embeddings")

    monkeypatch.setattr(model.model.bi_encoder, "encode_window", infinite)
    for path, content in (("/encode", {"texts": ["a"]}), ("/predict", {"rows": [["a"]]})):
        status, found = ask(port, path, content)
        assert (status, "finite embeddings" in found["detail"]) == (500, True)


def test_fifty_clients_at_the_same_time_get_their_own_answers(port, model):
    start = threading.Barrier(CLIENTS)

    def one_client(number):
        texts = [f"a film to love {number} {'very ' * (number % 5)}", f"no {number}"]
        start.wait(WAIT)
        rows = predicted(port, texts, texts[::-1])
        return texts, rows, ask(port, "/encode", {"texts": texts})[1]["embeddings"]

    with ThreadPoolExecutor(CLIENTS) as pool:
        results = list(pool.map(one_client, range(CLIENTS)))
    for texts, rows, vectors in results:
        check_rows(model, [tuple(texts), tuple(texts[::-1])], rows)
        assert_near(np.array(vectors), model.encode(texts), model_terms(model))


POST = b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16\r\n\r\n"
SLOW = {  # what a client sends before it neither sends nor reads: what comes for it
    "nothing": (b"", b""),
    "half of the headers": (POST[:-4], b"HTTP/1.0 408"),
    "half of the body": (POST + b'{"tex', b"HTTP/1.0 408"),
    "a request": (POST + b'{"texts": ["a"]}', b"HTTP/1.0 200"),
}


@pytest.mark.parametrize(("sent", "expected"), SLOW.values(), ids=SLOW)
def test_slow_clients_are_cut_off_and_others_served_meanwhile(
    service, sent, expected, monkeypatch, capfd
):
    monkeypatch.setattr("serving.server.SECONDS", 0.5)
    large = b"x" * 40_000_000  # more than the system's buffers hold
    monkeypatch.setattr(service, "encode", lambda body: large)
    threads = threading.active_count()
    with running(service) as port:
        held = [socket.create_connection(("127.0.0.1", port), timeout=WAIT) for _ in range(64)]
        for one in held:
            one.sendall(sent)
        status, _ = ask(port, "/elsewhere")
        assert status == 404
        while threading.active_count() > threads + 1:  # that of the server itself
            threading.Event().wait(0.02)
        for one in held:
            found = b"".join(iter(partial(one.recv, 1 << 16), b""))
            assert found.startswith(expected)
            assert len(found) < len(large)
            one.close()
    assert capfd.readouterr().err == ""
