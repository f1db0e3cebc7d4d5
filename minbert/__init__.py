"""A from-scratch BERT encoder and the bi-encoder for sentence embeddings built on it.

To read it in an evening, in this order:

1. `encoder.py`: `Layer.forward`, six lines; then its attention block, the embeddings, the encoder.
2. `batching.py`: token ids, length buckets, and batches packed without padding.
3. `attention.py`: softmax(q k^T / sqrt(D)) v of packed tokens. `linear.py`, `dropout.py`.
4. `pooling.py`: one embedding per sentence. `bi_encoder.py`: `embed` to train, `encode` to use.
5. `tokenizer.py`, `joined_pairs.py`, `tokenizer_files.py`: from text to token ids.
6. `config.py`, `weights.py`, `folder.py`, `sources.py`: folders of Hugging Face, and their names.
7. `precision.py`, `device.py`, `threads.py`, `sentences.py`: where and how `encode` computes.
8. `layer_copies.py`: own upper layers of a task. `bilstm.py`, `words.py`: the other encoder.
"""

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
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
