"""Splits of tasks, tokenised once and ready to be packed into batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from common.errors import UserError
from common.text import first_names
from minbert.batching import Batch, TokenLists, pack
from minbert.tokenizer import Tokenizer, truncation
from tasks import data_folder
from tasks.base import Task
from tasks.readers import Examples, Limit

FEW = 100  # dev examples below which one of them counts a point or more


class SoftTargets(NamedTuple):
    """What a student learns from a teacher about n examples.

    `scores` (n, C) or (n,) are the teacher's. `embeddings` (n, texts, H) are its embeddings of the
    texts, None unless they are asked for.
    """

    scores: Tensor
    embeddings: Tensor | None = None


@dataclass(frozen=True)
class Split:
    """Examples of one split without their texts, and the tokens of the texts.

    A training split may have `soft` targets of a teacher beside its labels.
    """

    examples: Examples
    tokens: tuple[TokenLists, ...]
    soft: SoftTargets | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of tokens of each example's longest text, (n,)."""
        return np.max([tokens.lengths for tokens in self.tokens], axis=0)

    @property
    def cut(self) -> tuple[int, int]:
        """Return the number of truncated texts and of all texts; views count once."""
        texts = self.token_lists
        return sum(int(one.truncated.sum()) for one in texts), sum(len(one) for one in texts)

    @property
    def token_lists(self) -> list[TokenLists]:
        """Return the different token lists: views of a text share one."""
        return list({id(tokens): tokens for tokens in self.tokens}.values())

    def batch(self, rows: np.ndarray) -> Batch:
        return pack(self.tokens, rows)

    def targets(self, rows: np.ndarray, device: torch.device) -> Tensor:
        assert self.examples.targets is not None, "expected a split with labels"
        return torch.from_numpy(self.examples.targets[rows]).to(device)

    def soft_targets(self, rows: np.ndarray, device: torch.device) -> SoftTargets | None:
        """Return the scores of the teacher for these rows, as float32; None without a teacher."""
        if self.soft is None:
            return None
        index = torch.from_numpy(rows)
        chosen = {
            name: values[index].to(device).float()
            for name, values in self.soft._asdict().items()
            if values is not None
        }
        return SoftTargets(**chosen)


Splits = Mapping[str, Mapping[str, Split]]  # by task and split


def read_split(task: Task, folder: Path, split: str, limit: Limit = None) -> Examples:
    """Read one split; `limit` draws some of its examples.

    For train, the task's source applies the limit: to all examples, or per task if its texts come
    from several tasks.
    """
    if split == "train":
        return task.read(folder, split, limit)
    return task.read(folder, split).sample(limit)


def dev_if_here(task: Task, data: object) -> Examples | None:
    """Return the dev examples of a task; None if a run records no data folder, or it has none."""
    if data is None:
        return None
    try:
        return task.read(data_folder(str(data)), "dev")
    except (UserError, OSError):
        return None


def tokenized(task: Task, examples: Examples, tokenizer: Tokenizer) -> Split:
    """Tokenise examples of a task."""
    # Two views of a text share one list of texts, which is tokenised once.
    known: dict[tuple[int, ...], TokenLists] = {}
    together = 2 if task.joint else 1
    tokens = []
    for begin in range(0, len(examples.texts), together):
        texts = examples.texts[begin : begin + together]
        key = tuple(map(id, texts))
        if key not in known:
            known[key] = tokenizer(*texts)
        tokens.append(known[key])
    return Split(replace(examples, texts=()), tuple(tokens))


def reading_notices(task: Task, folder: Path, split: str, examples: Examples) -> Iterator[str]:
    """Yield what was left out when a split was read."""
    if examples.leaked:
        yield f"{examples.leaked} training examples removed because they are in dev or test"
    if blank := examples.blank_rows:
        yield f"{blank} rows without label or text skipped in {task.source.where(folder, split)}"


def cut_notices(task: Task, split: str, found: Split, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield how many texts of a split are cut, if any."""
    cut, texts = found.cut
    if cut:
        kind = f"{split} {'pairs' if task.joint else 'texts'}"
        yield truncation(cut, texts, kind, tokenizer.max_tokens)


def small_split_notices(task: Task, splits: Mapping[str, Examples]) -> Iterator[str]:
    """Yield that the scores of few dev examples are rough, and which classes cannot be learnt."""
    train, dev = splits["train"].targets, splits["dev"].targets
    assert train is not None, "train has labels"
    assert dev is not None, "dev has labels"
    if len(dev) < FEW:
        share = task.kind.main_metric == "accuracy"
        points = f": one of them is {100 / len(dev):.1f} points" if share else ""
        yield f"scores on {len(dev)} dev examples are rough{points}"
    if task.kind.columns is not None:
        several = task.kind.labels is not None
        counts = train.sum(0) if several else np.bincount(train, minlength=task.kind.columns)
        names = [name for name, n in zip(task.kind.names, counts, strict=True) if not n]
        if names:
            what = "labels" if several else "classes"
            yield f"{what} without a training example: {first_names(names)}"


def fingerprint(splits: Splits) -> str:
    """Return the SHA-256 of tokens, targets and ids of every split, to identify a run's data."""
    whole = hashlib.sha256()
    for name, several in splits.items():
        for split, found in several.items():
            whole.update(f"{name} {split} {len(found.examples)}\n".encode())
            whole.update("\n".join(found.examples.ids).encode())
            for tokens in found.tokens:
                whole.update(tokens.offsets.data)
                whole.update(tokens.ids.data)
            if found.examples.targets is not None:
                whole.update(np.ascontiguousarray(found.examples.targets).data)
            for one in found.soft or ():
                if one is not None:
                    whole.update(one.numpy().data)
    return whole.hexdigest()
