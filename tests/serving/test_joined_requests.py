"""Requests of several clients share passes, and get the answers that each would get alone."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection

import numpy as np
import pytest
from background import in_background
from tolerances import assert_near, model_terms

from serving.batching import Batcher
from serving.joined_passes import EmbeddingRequest, answers, prediction_request
from serving.refusals import BusyError
from serving.server import server_of
from serving.service import Load, make_app

CLIENTS = 50
WAIT = 60  # seconds after which a server that does not answer fails the test


@dataclass(frozen=True)
class Item:
    name: str
    tokens: int = 1


def batched(items, budget=10, longest=100):
    """Send items at the same time; return the passes, and what each item got."""
    passes = []

    def work(several):
        passes.append([item.name for item in several])
        if any(item.name == "wrong" for item in several):
            raise ValueError("wrong")
        return [item.name.upper() for item in several]

    async def many():
        batcher = Batcher(work, budget, 0, longest)
        found = await asyncio.gather(*map(batcher, items), return_exceptions=True)
        assert (batcher.unanswered, list(batcher.queue)) == (0, [])
        return found

    return passes, asyncio.run(many())


def test_a_pass_takes_requests_up_to_the_budget_in_their_order():
    items = [Item("a", 4), Item("b", 6), Item("c", 20), Item("d", 5), Item("e", 5), Item("f", 1)]
    passes, found = batched(items)
    assert passes == [["a", "b"], ["c"], ["d", "e"], ["f"]]
    assert found == ["A", "B", "C", "D", "E", "F"]


def test_a_request_that_fails_does_not_fail_the_others():
    passes, found = batched([Item("a"), Item("wrong"), Item("b")])
    assert passes == [["a", "wrong", "b"], ["a"], ["wrong"], ["b"]]
    assert (found[0], found[2]) == ("A", "B")
    assert isinstance(found[1], ValueError)


def test_requests_above_the_limit_are_refused():
    _, found = batched([Item(str(number)) for number in range(5)], longest=3)
    assert found[:3] == ["0", "1", "2"]
    assert all(isinstance(one, BusyError) for one in found[3:])


def test_requests_that_arrive_during_a_pass_share_the_next_one():
    passes, begun, goes_on = [], threading.Event(), threading.Event()

    def work(several):
        passes.append(len(several))
        begun.set()
        assert goes_on.wait(WAIT)
        return several

    async def many():
        batcher = Batcher(work, 100, 0, 100)
        first = asyncio.ensure_future(batcher(Item("first")))
        await asyncio.to_thread(begun.wait, WAIT)
        later = [asyncio.ensure_future(batcher(Item(str(number)))) for number in range(7)]
        await asyncio.sleep(0)  # all of them wait
        later[3].cancel()
        goes_on.set()
        await asyncio.gather(first, *later, return_exceptions=True)
        return [one.cancelled() for one in later]

    assert asyncio.run(many()) == [number == 3 for number in range(7)]
    assert passes == [1, 7]


@pytest.mark.filterwarnings("ignore::common.errors.Notice")
def test_joined_requests_have_the_answers_of_separate_ones(model):
    tokenizer = model.model.bi_encoder.tokenizer
    asked = [
        ([("a film to love", "a film")], ["sst", "sts"]),
        ([("a cat sleeps", "a cat"), ("", "b")], ["own", "qqp"]),
        ([("too long",), ("a film to love",), ("never funny",)], ["sst"]),
    ]
    requests = [prediction_request(model, rows, tasks) for rows, tasks in asked]
    texts = ["a cat", "the sun is up"]
    requests[1:1] = [EmbeddingRequest(tokenizer(texts), unit) for unit in (True, False)]
    found = answers(model, requests)
    for unit, vectors in ((True, found[1]), (False, found[2])):
        assert_near(vectors, model.encode(texts, normalize=unit), model_terms(model))
    for (rows, tasks), several in zip(asked, [found[0], *found[3:]], strict=True):
        alone = model.predict([row if len(row) > 1 else row[0] for row in rows], tasks)
        assert several.keys() == alone.keys()
        for name, one in several.items():
            assert one.labels == alone[name].labels or name == "sts"
            assert_near(one.values, alone[name].values, model_terms(model))
            np.testing.assert_array_equal(one.empty, alone[name].empty)
            if one.probabilities is not None:
                assert_near(one.probabilities, alone[name].probabilities, model_terms(model))


def test_fifty_clients_at_the_same_time_get_their_own_answers(model, monkeypatch):
    """Each client sends requests of its own over one connection, one after the other."""
    start = threading.Barrier(CLIENTS)

    def client(number):
        word = ("film", "cat", "sun", "play")[number % 4]
        texts = [f"a {word} to love {number} {'very ' * (number % 5)}", f"no {word}"]
        asked = [
            ("/predict", {"texts": texts[:1], "task": "sst"}),
            ("/batch", {"rows": [texts, texts[::-1]], "tasks": ["qqp", "sts"]}),
            ("/encode", {"texts": texts}),
            ("/predict", {"texts": [texts[0], "x" * 5001]}),
        ]
        connection = HTTPConnection("127.0.0.1", port, timeout=WAIT)
        start.wait(WAIT)
        found = []
        for route, content in asked:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", route, json.dumps(content), headers)
            reply = connection.getresponse()
            found.append((reply.status, json.loads(reply.read())))
        connection.close()
        return texts, found

    passes = []

    def counted(model, requests, precision):
        passes.append(len(requests))
        return answers(model, requests, precision)

    monkeypatch.setattr("serving.service.answers", counted)
    server = server_of(make_app(model, load=Load(queue=CLIENTS)))
    with in_background(server) as port, ThreadPoolExecutor(CLIENTS) as pool:
        results = list(pool.map(client, range(CLIENTS)))
    assert sum(passes) == 3 * CLIENTS
    assert len(passes) < 3 * CLIENTS
    for texts, found in results:
        assert [status for status, _ in found] == [200, 200, 200, 422]
        sst, rows, vectors = (content for _, content in found[:3])
        alone = model.predict(texts[:1], ["sst"])["sst"]
        assert sst["label"] == alone.labels[0]
        shares = [one["share"] for one in sst["classes"]]
        assert_near(np.array(shares), alone.probabilities[0], model_terms(model))
        pairs = model.predict([tuple(texts), tuple(texts[::-1])], ["qqp", "sts"])
        for row, answer in enumerate(rows["rows"]):
            assert answer["qqp"]["label"] == pairs["qqp"].labels[row]
            assert_near(
                np.array(answer["sts"]["value"]), pairs["sts"].values[row], model_terms(model)
            )
        assert_near(np.array(vectors["embeddings"]), model.encode(texts), model_terms(model))
