"""The service: its answers, refused requests, and the page in a browser."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tolerances import assert_near, model_terms

import cli
from serving.answers import ServedRun
from serving.examples import BUILT_IN, examples_of
from serving.request_models import MOST
from serving.service import make_app
from tasks import data_folder


@pytest.fixture(scope="module")
def client(model):
    run = ServedRun("my-run", {"dev": {"sst": {"accuracy": 0.5}}})
    return TestClient(make_app(model, run=run), base_url="http://localhost")


def test_the_page_returns_the_predictions_of_the_model(client, model):
    found = client.post("/predict", json={"task": "sst", "texts": ["a film to love"]}).json()
    ours = model.predict(["a film to love"])["sst"]
    assert found["label"] == ours.labels[0]
    shares = [one["share"] for one in found["classes"]]
    np.testing.assert_allclose(shares, ours.probabilities[0], atol=1e-6)
    pair = {"task": "sts", "texts": ["a", "b"]}
    value = client.post("/predict", json=pair).json()["value"]
    assert value == pytest.approx(model.predict([("a", "b")])["sts"].values[0], abs=1e-5)


def test_all_heads_answer_at_once_with_the_scale_of_similarities(client, model):
    found = client.post("/predict", json={"texts": ["a cat", "a dog"]}).json()["tasks"]
    assert list(found) == list(model.tasks)
    assert found["sts"]["scale"] == [0.0, 5.0]
    assert found["sst"] == client.post("/predict", json={"texts": ["a cat"]}).json()["tasks"]["sst"]


@pytest.mark.filterwarnings("ignore::common.errors.Notice")
def test_a_text_above_the_limit_is_marked_for_the_tasks_that_read_it(client):
    limit = client.get("/about").json()["max_tokens"]
    long = "a " * (limit + 1)
    found = client.post("/predict", json={"texts": ["a", long]}).json()["tasks"]
    assert {name: one["cut"] for name, one in found.items()} == {
        "sst": False,
        "qqp": True,
        "sts": True,
        "own": True,
    }
    assert "only a part was read" in client.get("/").text


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
    assert asked == [("/predict", 200), ("/batch", 200)]


def test_a_batch_has_the_answers_of_its_rows(client, model):
    rows = [["a cat", "a dog"], ["a sun", "the sun"]]
    found = client.post("/batch", json={"rows": rows, "tasks": ["sts"]}).json()["rows"]
    ours = model.predict([tuple(row) for row in rows])["sts"].values
    np.testing.assert_allclose([row["sts"]["value"] for row in found], ours, atol=1e-5)


@pytest.mark.filterwarnings("ignore::common.errors.Notice")
@pytest.mark.parametrize("empty", ["", " \n", None])
def test_an_empty_text_has_null_and_a_reason_from_the_tasks_that_read_it(client, empty):
    rows = [["a cat", "a dog"], ["a cat", empty], [empty, "a dog"]]
    whole, second, first = client.post("/batch", json={"rows": rows}).json()["rows"]
    assert [one["reason"] for one in whole.values()] == [None] * 4
    assert second["sst"] == whole["sst"]  # it reads the first text only
    for one in (second["qqp"], second["sts"], second["own"], *first.values()):
        assert (one["label"], one["value"], one["classes"]) == (None, None, [])
        assert one["reason"] == "empty text"
        assert one.keys() == whole["sst"].keys()
    alone = client.post("/predict", json={"task": "sst", "texts": [empty]})
    assert (alone.status_code, alone.json()) == (200, first["sst"])
    assert "No prediction: ${reason}" in client.get("/").text


def test_it_describes_its_run_and_interface(client):
    assert client.get("/health").json()["run"] == "my-run"
    found = client.get("/about").json()
    assert ["sst", "accuracy", "0.5000", ""] in found["scores"]
    assert ["encoder", "tiny"] in found["settings"]
    routes = {"/health", "/predict", "/batch", "/encode"}
    assert routes <= client.get("/openapi.json").json()["paths"].keys()


def test_examples_are_those_of_dev_or_built_in_without_data(model, tmp_path):
    tasks = {name: model.tasks_by_name[name] for name in ("sst", "qqp")}
    found = examples_of(model.config, tasks)
    texts = tasks["sst"].read(data_folder("sample"), "dev").texts[0]
    assert {text for (text,) in found["sst"]} <= set(texts)
    assert all(len(row) == 2 for row in found["qqp"])
    nowhere = replace(model.config, data=str(tmp_path))
    assert examples_of(nowhere, tasks) == {"sst": BUILT_IN[1], "qqp": BUILT_IN[2]}


@pytest.mark.parametrize(("host", "local"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_a_page_that_others_can_open_has_no_texts_of_dev(host, local, trained, monkeypatch, capsys):
    class Server:
        def __init__(self, app):
            self.app = app

        def run(self, sockets):
            found = TestClient(self.app, base_url="http://localhost").get("/about").json()
            (sst,) = [task for task in found["tasks"] if task["name"] == "sst"]
            assert (sst["examples"] == BUILT_IN[1]) != local

    monkeypatch.setattr("serving.server.server_of", Server)
    assert cli.main(["--mode", "serve", "--run", str(trained), "--host", host, "--port", "0"]) == 0
    assert ("others can open it" in capsys.readouterr().out) != local


@pytest.mark.parametrize(
    ("path", "content", "status", "expected"),
    [
        ("/predict", {"task": "mnli", "texts": ["a"]}, 422, "task: expected sst, qqp"),
        ("/predict", {"task": "sst", "texts": ["a", "b"]}, 422, "expected 1 for sst, found 2"),
        ("/predict", {"task": "sst", "texts": ["x" * 5001]}, 422, "expected 0 to 5000 characters"),
        ("/predict", {"tasks": ["sst"], "texts": ["a"]}, 422, "tasks: Extra inputs are not"),
        ("/predict", {"task": "sst", "texts": ["x" * 9_000_000]}, 413, "at most 8388608 bytes"),
        ("/batch", {"rows": [["a"]] * (MOST + 1)}, 422, "rows: List should have at most 64 items"),
        ("/batch", {"rows": [["a"], ["a", "b"]]}, 422, "rows.2: expected 1 texts, found 2"),
        ("/encode", {"texts": ["a", "x" * 5001]}, 422, "texts.2: expected 0 to 5000 characters"),
        ("/encode", {"texts": ["a"], "task": "sst"}, 422, "none for a run without branches"),
    ],
)
def test_invalid_requests_are_refused(client, path, content, status, expected):
    headers = {"Content-Type": "application/json"}
    found = client.post(path, content=json.dumps(content), headers=headers)
    assert found.status_code == status
    assert expected in found.json()["error"]


def test_invalid_json_and_chunked_bodies_are_refused(client):
    headers = {"Content-Type": "application/json"}
    error = {"error": "expected JSON, found something else"}
    for body in (b"{", b'{"texts": ["\xff"]}', b"[" * 100_000):
        found = client.post("/predict", content=body, headers=headers)
        assert (found.status_code, found.json()) == (422, error)
    headers |= {"Transfer-Encoding": "chunked"}
    assert client.post("/predict", content=b"{}", headers=headers).status_code == 411


def test_requests_of_other_hosts_are_refused(model):
    elsewhere = TestClient(make_app(model), base_url="http://attacker.example")
    assert elsewhere.get("/about").status_code == 400


def test_embeddings_are_those_of_the_encoder(client, model):
    texts = ["A cat sleeps.", "", None, "The sun is up."]
    found = client.post("/encode", json={"texts": texts}).json()
    assert [one is None for one in found["embeddings"]] == [False, True, True, False]
    assert found["cut"] == [False] * 4
    shown = found["embeddings"][0], found["embeddings"][3]
    assert_near(np.array(shown), model.encode([texts[0], texts[3]]), model_terms(model))
    unit = client.post("/encode", json={"texts": ["A cat."], "normalize": True}).json()
    assert np.linalg.norm(unit["embeddings"][0]) == pytest.approx(1, abs=1e-6)


def test_an_error_of_the_model_is_one_line(model, monkeypatch):
    monkeypatch.setattr(model, "scores", lambda tokens: 1 / 0)
    app = make_app(model)
    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
    found = client.post("/predict", json={"texts": ["a"]})
    assert (found.status_code, "internal error" in found.json()["error"]) == (500, True)
