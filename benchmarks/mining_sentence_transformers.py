"""sentence-transformers' paraphrase_mining on the lines of a file, in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.util import paraphrase_mining_embeddings


def main(folder: str, file: str, count: str) -> None:
    """Its two parts, timed; the last line is JSON."""
    sentences = Path(file).read_text("utf-8").splitlines()
    model = SentenceTransformer(folder, device="cpu")
    begin = time.perf_counter()
    embeddings = model.encode(sentences, convert_to_tensor=True, show_progress_bar=False)
    encoded = time.perf_counter()
    pairs = paraphrase_mining_embeddings(embeddings, max_pairs=int(count))[: int(count)]
    ended = time.perf_counter()
    found = {"encoding": encoded - begin, "mining": ended - encoded, "least": pairs[-1][0]}
    print(json.dumps(found | {"pairs": len(pairs)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
