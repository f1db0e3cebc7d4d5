"""Nearest sentences and most similar pairs, exact and with a first pass by codes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import faiss
import numpy as np
import torch
from sentence_transformers.util import paraphrase_mining_embeddings, semantic_search

from benchmarks.mining import sentences_of
from benchmarks.timing import in_rounds, make_result, rate_table, timed
from minbert.bi_encoder import BiEncoder
from serving.mining import mine
from serving.quantized import CODES, index_of
from serving.rows import ROUNDING, Rows
from serving.search import search
from tasks import data_folder

TOP, RESCORE = 10, 4
QUERIES = 100
PAIRS = 1000


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return queries/s and recall@10 of searches, and millions of pairs/s of mining.

    The last sentences are the queries. Indexes are made before the time is taken.
    """
    sentences = sentences_of(data_folder(args.data), args.texts)
    embeddings = BiEncoder.from_pretrained("minilm").encode(sentences, normalize=True)
    count = min(QUERIES, len(embeddings) // 10)
    rows, queries = Rows.of(embeddings[:-count]), embeddings[-count:]
    indexes = {name: index_of(rows, name) for name in CODES}
    nearest, pairs = searches(rows, queries, indexes), minings(rows, indexes)
    recalls = {name: recall_of(find(), rows.array, queries) for name, find in nearest.items()}
    peer = "sentence-transformers"
    found = in_rounds(
        {name: partial(timed, one) for name, one in nearest.items()}, args.repetitions
    )
    rates = rate_table(found, count, peer)
    searched = {name: rates[name] | {"recall": recalls[name]} for name in rates}
    found = in_rounds({name: partial(timed, one) for name, one in pairs.items()}, args.repetitions)
    every = len(rows) * (len(rows) - 1) / 2e6
    groups = {
        f"queries/s, the {TOP} nearest of {len(rows):,} sentences, {count} queries": searched,
        f"million pairs/s, the {PAIRS:,} best of {every:,.1f} million": rate_table(
            found, every, peer
        ),
    }
    return make_result(args, "as each table says", groups)


def searches(
    rows: Rows, queries: np.ndarray, indexes: dict[str, Any]
) -> dict[str, Callable[[], np.ndarray]]:
    """Return functions that find the rows (q, k), by side."""
    faiss.omp_set_num_threads(torch.get_num_threads())
    flat = faiss.IndexFlatIP(rows.width)
    flat.add(rows.array)
    corpus, wanted = torch.from_numpy(rows.array), torch.from_numpy(queries)

    def peer() -> np.ndarray:
        found = semantic_search(wanted, corpus, top_k=TOP)
        return np.array([[one["corpus_id"] for one in results] for results in found])

    def ours(index: Any) -> np.ndarray:
        return search(rows, queries, TOP, index, candidates=RESCORE * TOP).rows

    def faiss_flat() -> np.ndarray:
        return np.asarray(flat.search(queries, TOP)[1])

    ours_by_name = {"ours exact": partial(ours, None)} | {
        f"ours {name}": partial(ours, index) for name, index in indexes.items()
    }
    return {**ours_by_name, "sentence-transformers": peer, "faiss flat": faiss_flat}


def recall_of(found: np.ndarray, embeddings: np.ndarray, queries: np.ndarray) -> float:
    """Return the share of rows found (q, k) that are among the k nearest, up to rounding."""
    cosines = queries.astype(np.float64) @ embeddings.astype(np.float64).T
    least = np.sort(cosines, axis=1)[:, -found.shape[1], None]
    return float(np.mean(np.take_along_axis(cosines, found, axis=1) >= least - ROUNDING))


def minings(rows: Rows, indexes: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Return functions that find the most similar pairs, by side."""
    corpus = torch.from_numpy(rows.array)
    return {
        "ours exact": partial(mine, rows, PAIRS),
        "ours int8": partial(mine, rows, PAIRS, index=indexes["int8"]),
        "sentence-transformers": partial(paraphrase_mining_embeddings, corpus, max_pairs=PAIRS),
    }
