"""Requests per second of the server: those of several clients joined into passes, or one by one."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.timing import in_rounds, make_result, spread
from multitask.settings.config import RunConfig
from multitask.training import train
from serving.model import MultiTaskModel
from serving.server import in_background, server_of
from serving.service import Load, make_app
from tasks import build_task, data_folder

ENCODER, CLIENTS = "minilm", (1, 8, 50)
SIDES = {"joined": Load(), "one by one": Load(tokens=1, wait=0)}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure `/predict` of one head with texts of SST, from several clients at the same time."""
    texts = build_task("sst").read(data_folder(args.data), "train").texts[0][: args.texts]
    repetitions = min(args.repetitions, 3)
    with TemporaryDirectory() as place:
        small = RunConfig(tasks=("sst",), encoder=ENCODER, limit=32, epochs=1, freeze_encoder=True)
        run = train(small, Path(place) / "run", tracker="none")
        model = MultiTaskModel.load(run.folder, args.device)
    groups = {}
    for clients in CLIENTS:
        times: dict[str, list[list[float]]] = {name: [] for name in SIDES}
        sides = {
            name: partial(requests_per_second, model, load, clients, texts, times[name])
            for name, load in SIDES.items()
        }
        groups[f"{clients} clients, {len(texts)} requests"] = rates(
            in_rounds(sides, repetitions), times
        )
    return make_result(args, "requests/s", groups) | {"repetitions": repetitions}


def rates(found: dict[str, list[float]], times: dict[str, list[list[float]]]) -> dict[str, Any]:
    """Return each side's requests/s, the ratio to one by one, and percentiles of a request.

    `times` has the seconds of the requests of each round; the first one is a warm-up.
    """
    reference = float(np.median(found["one by one"]))
    return {
        name: spread(values)
        | {"ratio": float(np.median(values)) / reference}
        | {f"p{q}_ms": float(1000 * np.percentile(times[name][1:], q)) for q in (50, 95)}
        for name, values in found.items()
    }


def requests_per_second(
    model: MultiTaskModel, load: Load, clients: int, texts: Sequence[str], times: list[list[float]]
) -> float:
    """Send one request per text from several connections; append the list of their seconds."""
    shares = [texts[client::clients] for client in range(clients)]
    server = server_of(make_app(model, load=load))
    with in_background(server) as port, ThreadPoolExecutor(clients) as pool:
        begin = time.perf_counter()
        found = list(pool.map(partial(seconds_of, port), shares))
        seconds = time.perf_counter() - begin
    times.append([one for several in found for one in several])
    return len(texts) / seconds


def seconds_of(port: int, texts: Sequence[str]) -> list[float]:
    """Return the seconds of each request of one client."""
    connection, found = HTTPConnection("127.0.0.1", port, timeout=600), []
    for text in texts:
        body = json.dumps({"texts": [text], "task": "sst"})
        begin = time.perf_counter()
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        if reply.status != 200:
            raise RuntimeError(f"expected status 200, found {reply.status}")
        found.append(time.perf_counter() - begin)
    connection.close()
    return found
