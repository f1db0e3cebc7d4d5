"""Splits of tasks, tokenised once and ready to be packed into batches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from minbert.batching import Batch, TokenLists, pack
from minbert.tokenizer import Tokenizer
from tasks.base import Task
from tasks.readers import Examples


@dataclass(frozen=True)
class Split:
    """Examples of one split without texts, their tokens, and perhaps a teacher's scores `soft`."""

    examples: Examples
    tokens: tuple[TokenLists, ...]
    soft: Tensor | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of tokens of each example's longest text, (n,)."""
        return np.max([tokens.lengths for tokens in self.tokens], axis=0)

    @property
    def cut(self) -> tuple[int, int]:
        """Return the number of truncated texts and of all texts; views of a text count once."""
        texts = {id(tokens): tokens for tokens in self.tokens}.values()
        return sum(int(one.truncated.sum()) for one in texts), sum(len(one) for one in texts)

    def batch(self, rows: np.ndarray) -> Batch:
        return pack(self.tokens, rows)

    def targets(self, rows: np.ndarray, device: torch.device) -> Tensor:
        assert self.examples.targets is not None, "expected a split with labels"
        return torch.from_numpy(self.examples.targets[rows]).to(device)

    def soft_targets(self, rows: np.ndarray, device: torch.device) -> Tensor | None:
        """Return the scores of the teacher for these rows, as float32; None without a teacher."""
        return None if self.soft is None else self.soft[torch.from_numpy(rows)].to(device).float()


Splits = Mapping[str, Mapping[str, Split]]  # by task and split


def tokenized(task: Task, examples: Examples, tokenizer: Tokenizer) -> Split:
    """Tokenise examples of a task; two views of a text share one list, tokenised once."""
    step = 2 if task.joint else 1
    columns = [examples.texts[n : n + step] for n in range(0, len(examples.texts), step)]
    keys = [tuple(map(id, several)) for several in columns]
    distinct = dict(zip(keys, columns, strict=True))
    tokens = {key: tokenizer(*several) for key, several in distinct.items()}
    return Split(replace(examples, texts=()), tuple(tokens[key] for key in keys))
