"""A static student of a sentence encoder: one vector per token, whose mean stands for a text.

The table starts from the encoder's embeddings of single tokens, weighted by frequency (Model2Vec:
Tulkens and van Dongen, 2024). A linear map by least squares, then Adam, fit it to the encoder's
embeddings of texts (Tokenlearn, by the same authors, has the second step).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.errors import SettingsError, UserError
from common.progress import bar
from minbert.batching import TokenLists, concatenated_ranges, offsets_of
from minbert.bi_encoder import BiEncoder
from minbert.tokenizer import Tokenizer

WIDTH = 256  # Model2Vec's
LEAST = 20  # different texts
SHARE, MOST = 0.1, 2000  # of the texts are held out
RARE = 1e-3  # a of smooth inverse frequency (Arora et al., 2017)
RIDGE = 1e-2  # of the linear map, as a share of the mean squared length of an axis
BATCH, RATE, EPOCHS, PATIENCE = 256, 1e-3, 30, 2


@dataclass(frozen=True)
class Student:
    """A table of token vectors, with its agreement with the encoder.

    `table` (V, W) float32, zero for special and unknown tokens; `projection` (H, W) has orthonormal
    columns, and maps the encoder's embeddings to those that the table approximates. `untrained` and
    `cosine` are mean cosines between the encoder's embeddings (H,) and the student's, mapped back
    by the projection, on `held_out` texts, before and after the fit to `texts` others.
    """

    table: Tensor
    projection: Tensor
    texts: int
    held_out: int
    untrained: float
    cosine: float


@dataclass(frozen=True)
class Bags:
    """Tokens of n texts, concatenated: `ids` (total,) int64, `offsets` (n + 1,) int64."""

    ids: np.ndarray
    offsets: np.ndarray

    def select(self, rows: np.ndarray) -> Bags:
        """Return the texts `rows`, in that order."""
        index = concatenated_ranges(self.offsets, rows)
        return Bags(self.ids[index], offsets_of(np.diff(self.offsets)[rows]))

    def means(self, table: Tensor) -> Tensor:
        """Return the mean of each text's rows of a table (V, W): (n, W)."""
        ids, begins = torch.from_numpy(self.ids), torch.from_numpy(self.offsets[:-1])
        return F.embedding_bag(ids, table, begins, mode="mean", sparse=True)


def distil(
    teacher: BiEncoder,
    texts: Sequence[str],
    width: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Student:
    """Fit a table of token vectors to a teacher's embeddings of texts.

    Args:
        teacher: the encoder, whose pooling is used.
        texts: texts like those that the student will embed; repeated ones count once.
        width: W, at most the teacher's; None for 256, or the teacher's if it is smaller.
        seed: of the held-out texts and of the order of the others.
        progress: whether to show progress bars.

    Raises:
        SettingsError: for another width.
        UserError: for too few texts.
    """
    width = min(WIDTH, teacher.width) if width is None else width
    if not 1 <= width <= teacher.width:
        line = f"width: expected from 1 to {teacher.width}, the encoder's, found {width}"
        raise SettingsError(line)
    tokenizer, vocabulary = teacher.tokenizer, teacher.tokenizer.vocab_size
    bags, known = token_bags(tokenizer, list(dict.fromkeys(texts)))
    if len(known) < LEAST:
        raise UserError(
            f"texts: expected at least {LEAST} different ones with known tokens, found {len(known)}"
        )
    targets = torch.from_numpy(teacher.encode(known, normalize=True, progress=progress))  # (n, H)
    generator = np.random.default_rng(seed)
    held, train = np.split(
        generator.permutation(len(known)), [min(MOST, round(SHARE * len(known)))]
    )
    projection = principal_axes(targets[train], width)
    goals = targets @ projection  # (n, W)

    def cosine(table: Tensor) -> float:
        found = bags.select(held).means(table) @ projection.T
        return float(F.cosine_similarity(found, targets[held]).mean())

    tokens = weighted_tokens(
        teacher, np.bincount(bags.select(train).ids, minlength=vocabulary), progress
    )
    untrained = cosine(tokens @ projection)
    best = mapped(tokens, bags.select(train), goals[train])
    score, worse = cosine(best), 0
    with bar("distil", "epoch", EPOCHS if progress else None) as counter:
        for table in fit(best, bags, goals, train, generator):
            found = cosine(table)
            best, score, worse = (table, found, 0) if found > score else (best, score, worse + 1)
            counter.update()
            if worse == PATIENCE:
                break
    return Student(best, projection, len(train), len(held), untrained, score)


def fit(
    table: Tensor, bags: Bags, targets: Tensor, rows: np.ndarray, generator: np.random.Generator
) -> Iterator[Tensor]:
    """Yield the table after each epoch that minimises 1 - cosine to the targets (n, W) of `rows`.

    Adam updates only the tokens of a batch, so that others keep their vectors.
    """
    weight = table.clone().requires_grad_()
    optimizer = torch.optim.SparseAdam([weight], lr=RATE)
    for _ in range(EPOCHS):
        shuffled = generator.permutation(rows)
        for some in np.split(shuffled, range(BATCH, len(rows), BATCH)):
            found = bags.select(some).means(weight)
            loss = 1 - F.cosine_similarity(found, targets[some]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield weight.detach().clone()


def principal_axes(embeddings: Tensor, width: int) -> Tensor:
    """Return the first right singular vectors of embeddings (n, H), not centred: (H, width).

    Without centring, the projection keeps as much as possible of inner products.
    """
    wide = embeddings.double()
    _, vectors = torch.linalg.eigh(wide.T @ wide)  # ascending
    return vectors.flip(1)[:, :width].float()


def weighted_tokens(teacher: BiEncoder, counts: np.ndarray, progress: bool) -> Tensor:
    """Return the teacher's embeddings of single tokens, weighted by their counts (V,): (V, H).

    The weights are a / (a + p) with the frequency p of the token (SIF: Arora et al., 2017, section
    3), with one added to each count.
    """
    tokenizer = teacher.tokenizer
    parts = [np.concatenate([tokenizer.begin, [one], tokenizer.end]) for one in range(len(counts))]
    offsets = offsets_of(np.array([len(part) for part in parts]))
    ids = np.concatenate(parts).astype(np.int32)
    tokens = TokenLists(ids, offsets, np.zeros(len(parts), np.bool_))
    with bar("tokens", "token", len(parts) if progress else None) as counter:
        vectors = teacher.encode_window(teacher.encoder, tokens, count=counter.update)
    frequencies = (counts + 1) / (counts + 1).sum()
    weighted = torch.from_numpy(vectors * (RARE / (RARE + frequencies))[:, None]).float()
    weighted[left_out(tokenizer)] = 0
    return weighted


def mapped(tokens: Tensor, bags: Bags, goals: Tensor) -> Tensor:
    """Return `tokens` (V, H) times the matrix (H, W) that maps means of texts to `goals` (n, W).

    Ridge regression on means of unit length. It also places tokens that are in no text. The rows of
    the result (V, W) have a mean length of 1, to which the step size of Adam suits.
    """
    means = F.normalize(bags.means(tokens).double())  # (n, H)
    gram = means.T @ means
    ridge = RIDGE * gram.trace() / len(gram) * torch.eye(len(gram), dtype=gram.dtype)
    table = tokens @ torch.linalg.solve(gram + ridge, means.T @ goals.double()).float()
    return table / table.norm(dim=1).mean()


def token_bags(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Bags, list[str]]:
    """Return the tokens of those texts that have known ones, and these texts."""
    ignored = left_out(tokenizer)
    lists = tokenizer.plain(tokenizer.cased(texts))
    lists = [ids[~np.isin(ids, ignored)].astype(np.int64) for ids in lists]
    known = [text for text, ids in zip(texts, lists, strict=True) if len(ids)]
    offsets = offsets_of(np.array([len(ids) for ids in lists if len(ids)], np.int64))
    return Bags(np.concatenate([np.zeros(0, np.int64), *lists]), offsets), known


def left_out(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of special and unknown tokens, which model2vec ignores, too."""
    backend = tokenizer.backend
    found = {id for id, token in backend.get_added_tokens_decoder().items() if token.special}
    unknown = getattr(backend.model, "unk_token", None)
    if unknown is not None and (number := backend.token_to_id(unknown)) is not None:
        found.add(number)
    return sorted(found)
