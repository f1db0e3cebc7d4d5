"""Requests as tokens, and their answers from one pass of the model for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import torch
import torch.nn.functional as F

from minbert.batching import TokenLists, concatenated
from serving.model import MultiTaskModel
from serving.prediction import Prediction


@dataclass(frozen=True)
class PredictionRequest:
    """Rows of one or two texts, and their tokens by task, a list for each sequence of the task."""

    rows: Sequence[tuple[str, ...]]
    by_task: Mapping[str, Sequence[TokenLists]]

    @property
    def tokens(self) -> int:
        """The number of tokens of the task with the most; tasks share equal texts."""
        return max(sum(len(one.ids) for one in several) for several in self.by_task.values())


@dataclass(frozen=True)
class EmbeddingRequest:
    """The tokens of n texts; `task` chooses its branch, and None the shared encoder."""

    texts: TokenLists
    normalize: bool
    task: str | None = None

    @property
    def tokens(self) -> int:
        return len(self.texts.ids)


AnyRequest = PredictionRequest | EmbeddingRequest
AnyAnswer = dict[str, Prediction] | np.ndarray


def prediction_request(
    model: MultiTaskModel, rows: Sequence[tuple[str, ...]], tasks: Sequence[str]
) -> PredictionRequest:
    """Return a request with the tokens of its rows for these tasks."""
    return PredictionRequest(rows, model.tokens(list(zip(*rows, strict=True)), tasks))


def answers(
    model: MultiTaskModel, requests: Sequence[AnyRequest], precision: str = "fp32"
) -> list[AnyAnswer]:
    """Return the predictions by task, or the embeddings (n, H), of each request, in their order.

    All predictions need one pass of the encoder, and all embeddings another one.
    """
    predict = [one for one in requests if isinstance(one, PredictionRequest)]
    embed = [one for one in requests if isinstance(one, EmbeddingRequest)]
    predictions, embeddings = (
        iter(predicted(model, predict, precision)),
        iter(embedded(model, embed, precision)),
    )
    return [
        next(predictions) if isinstance(one, PredictionRequest) else next(embeddings)
        for one in requests
    ]


def predicted(
    model: MultiTaskModel, requests: Sequence[PredictionRequest], precision: str
) -> list[dict[str, Prediction]]:
    """Return the predictions of each request, with one pass for the rows of all."""
    asking = {
        name: [one for one in requests if name in one.by_task]
        for name in dict.fromkeys(name for one in requests for name in one.by_task)
    }
    tokens = {
        name: [concatenated(part) for part in zip(*(o.by_task[name] for o in some), strict=True)]
        for name, some in asking.items()
    }
    scores = {
        name: iter(split_rows(found, [len(one.rows) for one in asking[name]]))
        for name, found in model.scores(tokens, precision).items()
    }
    return [
        model.predictions(one.rows, one.by_task, {name: next(scores[name]) for name in one.by_task})
        for one in requests
    ]


def embedded(
    model: MultiTaskModel, requests: Sequence[EmbeddingRequest], precision: str
) -> list[np.ndarray]:
    """Return the embeddings (n, H) of each request, with one pass per branch."""
    found: dict[int, np.ndarray] = {}
    for task in dict.fromkeys(one.task for one in requests):
        some = [place for place, one in enumerate(requests) if one.task == task]
        bi_encoder = model.model.bi_encoder_of(task)
        tokens = concatenated([requests[place].texts for place in some])
        encoder = model.encoder(precision, task)
        vectors = bi_encoder.encode_window(encoder, tokens)
        parts = split_rows(vectors, [len(requests[place].texts) for place in some])
        found |= dict(zip(some, parts, strict=True))
    return [
        normalised(found[place]) if one.normalize else found[place]
        for place, one in enumerate(requests)
    ]


def normalised(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors (n, H) to unit length, as the encoder does."""
    return F.normalize(torch.from_numpy(vectors)).numpy()


def split_rows(array: np.ndarray, counts: Sequence[int]) -> list[np.ndarray]:
    """Split the rows of an array into parts of these numbers of rows."""
    return [array[begin:end] for begin, end in pairwise(accumulate(counts, initial=0))]
