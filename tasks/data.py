"""One split of a task, tokenised once, ready to be packed into batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from minbert.batching import Batch, TokenLists, pack
from minbert.tokenizer import Tokenizer
from tasks.base import Task
from tasks.readers import Examples


@dataclass(frozen=True)
class Split:
    """Examples of one split and the tokens of their texts."""

    examples: Examples
    tokens: tuple[TokenLists, ...]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each example's longest text: (n,)."""
        return np.max([tokens.lengths for tokens in self.tokens], axis=0)

    def batch(self, rows: np.ndarray) -> Batch:
        return pack(self.tokens, rows)

    def targets(self, rows: np.ndarray, device: torch.device) -> Tensor:
        assert self.examples.targets is not None, "a test file has no labels"
        return torch.from_numpy(self.examples.targets[rows]).to(device)


def load_split(
    task: Task, folder: Path, split: str, tokenizer: Tokenizer, limit: int | None = None
) -> Split:
    """Read and tokenise `train`, `dev` or `test`; `limit` draws some examples."""
    examples = task.read(folder, split, limit).some(limit)
    if task.joint:
        first, second = examples.texts
        return Split(examples, (tokenizer(first, second),))
    # Two views of a sentence are the same list of texts, tokenised once.
    tokens = {id(texts): tokenizer(texts) for texts in {id(t): t for t in examples.texts}.values()}
    return Split(examples, tuple(tokens[id(texts)] for texts in examples.texts))
