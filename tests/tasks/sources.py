"""Sources of examples that tests invent."""

from dataclasses import dataclass

import numpy as np

from tasks.readers import Examples
from tasks.tables import DataError


@dataclass(frozen=True)
class Invented:
    """Three classes of unequal size."""

    counts: dict
    splits: tuple = ("train", "dev")

    def read(self, folder, split, limit=None):
        targets = np.repeat(np.arange(3), self.counts[split])
        ids = [f"{split}{row}" for row in range(len(targets))]
        return Examples(ids, (list(ids),), targets)

    def where(self, folder, split):
        return f"{split}.tsv"


@dataclass(frozen=True)
class Given:
    """Splits of texts as they are written down, a list a column."""

    texts: dict
    splits: tuple = ("train", "dev", "test")

    def read(self, folder, split, limit=None):
        if split not in self.texts:
            raise DataError(f"{split}: no file")
        columns = self.texts[split]
        ids = [str(row) for row in range(len(columns[0]))]
        return Examples(ids, columns, np.arange(len(ids))).sample(limit)

    def where(self, folder, split):
        return __file__ if split in self.texts else "nowhere"
