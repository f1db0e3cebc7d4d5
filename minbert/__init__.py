"""A from-scratch BERT encoder and the bi-encoder for sentence embeddings built on it."""

import os
from typing import TYPE_CHECKING, Any

# oneDNN caches one kernel per shape, up to 1,024 kernels. With packed batches in bfloat16 this
# cache grew to several GiB in an hour. The encoder rounds shapes up (minbert/linear.py), but other
# models in the same process do not.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")

if TYPE_CHECKING:
    from minbert.bi_encoder import BiEncoder

__all__ = ["BiEncoder"]


def __getattr__(name: str) -> Any:
    """Import torch only at the first access to the encoder, so that `--help` stays fast."""
    if name == "BiEncoder":
        from minbert.bi_encoder import BiEncoder

        return BiEncoder
    raise AttributeError(f"module 'minbert' has no attribute {name!r}")
