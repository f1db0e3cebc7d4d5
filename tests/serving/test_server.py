"""The server: its answers, shared passes, refused requests, and deadlines."""

import asyncio
import io
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tolerances import assert_near, model_terms

from serving.server import CONNECTIONS, Batcher, make_app, server_of

CLIENTS = 50
WAIT = 60  # seconds after which a server that does not answer fails the test
ROW = ["a cat", "a dog"]


@pytest.fixture(scope="module")
def app(model):
    return make_app(model, "my-run", {"dev": {"sst": {"accuracy": 0.5}}})


@pytest.fixture(scope="module")
def client(app):
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


@contextmanager
def in_background(server):
    """Run a server on this machine in a thread, to the end of the block; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def predicted(client, *rows, **more):
    found = client.post("/predict", json={"rows": rows, **more})
    assert found.status_code == 200, found.json()
    return found.json()["rows"]


def check_rows(model, rows, found):
    """Each row has the predictions of the model for it, up to rounding."""
    for name, ours in model.predict(rows).items():
        answers = [row[name] for row in found]
        assert [one["label"] for one in answers] == ours.labels or name == "sts"
        values = np.array([one["value"] for one in answers])
        assert_near(values, ours.values, model_terms(model))
        if ours.probabilities is not None:
            shares = np.array([[c["share"] for c in one["classes"]] for one in answers])
            assert_near(shares, ours.probabilities, model_terms(model))


def test_answers_are_the_predictions_of_the_model(client, model):
    rows = [ROW, ["a sun", "the sun"]]
    found = predicted(client, *rows)
    check_rows(model, [tuple(row) for row in rows], found)
    assert found[0]["sts"]["scale"] == [0.0, 5.0]
    (single,) = predicted(client, ["a cat"], tasks=["sst"])
    check_rows(model, ["a cat"], [single])


@pytest.mark.parametrize("empty", ["", " \n", None])
def test_an_empty_text_has_null_and_a_reason_from_the_tasks_that_read_it(client, empty):
    whole, second, first = predicted(client, ROW, ["a cat", empty], [empty, "a dog"])
    assert [one["reason"] for one in whole.values()] == [None] * 4
    assert second["sst"] == whole["sst"]  # it reads the first text only
    for one in (second["qqp"], second["sts"], second["own"], *first.values()):
        assert (one["label"], one["value"], one["classes"]) == (None, None, [])
        assert one["reason"] == "empty text"
        assert one.keys() == whole["sst"].keys()


def test_a_text_above_the_limit_is_marked_for_the_tasks_that_read_it(client):
    limit = client.get("/about").json()["max_tokens"]
    (found,) = predicted(client, ["a", "a " * (limit + 1)])
    cut = {name: one["cut"] for name, one in found.items()}
    assert cut == {"sst": False, "qqp": True, "sts": True, "own": True}


def test_embeddings_are_those_of_the_encoder(client, model):
    texts = ["A cat sleeps.", "", None, "The sun is up."]
    found = client.post("/encode", json={"texts": texts}).json()
    assert [one is None for one in found["embeddings"]] == [False, True, True, False]
    assert found["cut"] == [False] * 4
    shown = found["embeddings"][0], found["embeddings"][3]
    assert_near(np.array(shown), model.encode([texts[0], texts[3]]), model_terms(model))
    unit = client.post("/encode", json={"texts": ["A cat."], "normalize": True}).json()
    assert np.linalg.norm(unit["embeddings"][0]) == pytest.approx(1, abs=1e-6)


def test_the_page_and_what_it_shows(client):
    page = client.get("/").text
    for part in ("<title>Sentences</title>", "only a part was read", "No prediction: ${reason}"):
        assert part in page
    found = client.get("/about").json()
    assert found["run"] == "my-run"
    assert ["sst", "accuracy", "0.5000", ""] in found["scores"]
    assert ["encoder", "tiny"] in found["settings"]
    routes = {"/predict", "/encode", "/about"}
    assert routes == client.get("/openapi.json").json()["paths"].keys()


def test_the_documented_requests_are_answered(client, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "use.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(import json\nfrom urllib.*?)```", page, re.DOTALL)
    asked = []

    def send(request):
        route = request.full_url.removeprefix("http://127.0.0.1:8000")
        found = client.post(route, content=request.data, headers=dict(request.headers))
        asked.append((route, found.status_code))
        return io.BytesIO(found.content)

    monkeypatch.setattr("urllib.request.urlopen", send)
    exec(block.replace("alike", "sts"), {})
    assert asked == [("/predict", 200), ("/encode", 200)]


@pytest.mark.parametrize(
    ("path", "content", "status", "expected"),
    [
        ("/predict", {"tasks": ["mnli"], "rows": [ROW]}, 422, "task: expected one of sst, qqp"),
        ("/predict", {"rows": [["x" * 5001]]}, 422, "rows.0.0: String should have at most 5000"),
        ("/predict", {"rows": [["x" * 9_000_000]]}, 413, "up to 8388608"),
        ("/predict", {"rows": [["a"], ROW]}, 422, "rows: expected only texts or only pairs"),
        ("/encode", {"texts": ["a"], "task": "mnli"}, 422, "task: expected one of sst, qqp"),
    ],
)
def test_invalid_requests_are_refused(client, path, content, status, expected):
    headers = {"Content-Type": "application/json"}
    found = client.post(path, content=json.dumps(content), headers=headers)
    assert found.status_code == status
    assert expected in found.json()["detail"]


def test_invalid_json_chunked_bodies_and_other_hosts_are_refused(client, app):
    headers = {"Content-Type": "application/json"}
    found = client.post("/predict", content=b'{"rows": [["\xff"]]}', headers=headers)
    assert found.status_code in (400, 422)
    headers |= {"Transfer-Encoding": "chunked"}
    assert client.post("/predict", content=b"{}", headers=headers).status_code == 413
    elsewhere = TestClient(app, base_url="http://attacker.example")
    assert elsewhere.get("/about").status_code == 400


# Shared passes


def test_requests_that_arrive_during_a_pass_share_the_next_one_of_their_kind():
    passes, begun, goes_on = [], threading.Event(), threading.Event()

    def work(rows, kind):
        passes.append((kind, len(rows)))
        begun.set()
        assert goes_on.wait(WAIT)
        if kind == "wrong":
            raise ValueError(kind)
        return [f"{kind} {row}" for row in rows]

    async def many():
        batcher = Batcher()
        first = asyncio.ensure_future(batcher(work, [0], "a"))
        await asyncio.to_thread(begun.wait, WAIT)
        sent = [([1, 2], "a"), ([3], "b"), ([4], "a"), ([5], "wrong"), ([6, 7], "b")]
        later = [asyncio.ensure_future(batcher(work, rows, kind)) for rows, kind in sent]
        await asyncio.sleep(0)  # all of them wait
        later[2].cancel()
        goes_on.set()
        return await asyncio.gather(first, *later, return_exceptions=True)

    found = asyncio.run(many())
    assert passes == [("a", 1), ("a", 3), ("b", 3), ("wrong", 1)]
    assert found[:3] == [["a 0"], ["a 1", "a 2"], ["b 3"]]
    assert [type(one) for one in found[3:5]] == [asyncio.CancelledError, ValueError]
    assert found[5] == ["b 6", "b 7"]


def test_fifty_clients_at_the_same_time_get_their_own_answers(model, app, monkeypatch):
    rows_of_passes, predict_window = [], model.predict_window
    start = threading.Barrier(CLIENTS)

    def counted(columns, *more):
        rows_of_passes.append(len(columns[0]))
        return predict_window(columns, *more)

    def one_client(number):
        """Sends two requests over one connection."""
        texts = [f"a film to love {number} {'very ' * (number % 5)}", f"no {number}"]
        connection = HTTPConnection("127.0.0.1", port, timeout=WAIT)
        start.wait(WAIT)
        found = [texts]
        for route, content in (
            ("/predict", {"rows": [texts, texts[::-1]]}),
            ("/encode", {"texts": texts}),
        ):
            headers = {"Content-Type": "application/json"}
            connection.request("POST", route, json.dumps(content), headers)
            found.append(json.loads(connection.getresponse().read()))
        connection.close()
        return found

    with (
        monkeypatch.context() as patch,
        in_background(server_of(app)) as port,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        patch.setattr(model, "predict_window", counted)
        results = list(pool.map(one_client, range(CLIENTS)))
    assert sum(rows_of_passes) == 2 * CLIENTS
    assert len(rows_of_passes) < CLIENTS
    for texts, rows, vectors in results:
        check_rows(model, [tuple(texts), tuple(texts[::-1])], rows["rows"])
        assert_near(np.array(vectors["embeddings"]), model.encode(texts), model_terms(model))


# Deadlines

MANY = 40_000_000  # bytes of an answer, more than the system's buffers hold
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALVES = {
    "nothing": b"",
    "half of the headers": REQUEST[:-4],
    "no body": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
    "half of the headers after an answer": REQUEST + REQUEST[:-4],
}


def answering(count):
    """Return an application that reads a request and answers with many bytes."""

    async def application(scope, receive, send):
        if scope["type"] == "http":
            while (message := await receive()).get("more_body"):
                pass
            if message["type"] == "http.request":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"x" * count})

    return application


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT)


def answer(connection):
    """All that comes before the server ends the connection."""
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_unfinished_requests_time_out(sent, capsys, monkeypatch):
    monkeypatch.setattr("serving.server.SECONDS", 0.2)
    with in_background(server_of(answering(9))) as port, connect(port) as slow:
        slow.sendall(sent)
        assert answer(slow).endswith(
            b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
    assert capsys.readouterr().err == ""


def test_a_client_that_does_not_take_its_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr("serving.server.SECONDS", 0.2)
    server = server_of(answering(MANY))
    with in_background(server) as port, connect(port) as lazy:
        lazy.sendall(REQUEST)
        assert lazy.recv(1)
        end = time.monotonic() + WAIT
        while server.server_state.connections:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert len(answer(lazy)) < MANY


def test_connections_above_the_limit_are_refused():
    with in_background(server_of(answering(MANY))) as port:
        held = [connect(port) for _ in range(CONNECTIONS)]
        held[-1].sendall(REQUEST)
        assert held[-1].recv(12) == b"HTTP/1.1 503"
        for one in held:
            one.close()
