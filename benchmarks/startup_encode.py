"""A minimal sentence-transformers script: the sentences of a file -> an array on disk."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from minbert.sources import minilm_folder


def main() -> None:
    sentences = Path(sys.argv[1]).read_text("utf-8").splitlines()
    np.save(sys.argv[2], SentenceTransformer(str(minilm_folder())).encode(sentences))


if __name__ == "__main__":
    main()
