"""Sentences -> embeddings: a from-scratch BERT encoder and the bi-encoder built on it."""

import os
from typing import TYPE_CHECKING, Any

# oneDNN keeps a kernel for each shape it meets, 1,024 of them: with packed batches in bfloat16 that
# grew to several GiB in an hour. The encoder rounds shapes up (minbert/linear.py), but other models
# beside it do not.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")

if TYPE_CHECKING:
    from minbert.bi_encoder import BiEncoder

__all__ = ["BiEncoder"]


def __getattr__(name: str) -> Any:
    """Import torch only when the encoder is first asked for, so that `--help` stays instant."""
    if name == "BiEncoder":
        from minbert.bi_encoder import BiEncoder

        return BiEncoder
    raise AttributeError(f"module 'minbert' has no attribute {name!r}")
