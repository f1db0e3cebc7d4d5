"""Sentences -> embeddings: a from-scratch BERT encoder and the bi-encoder built on it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minbert.bi_encoder import BiEncoder

__all__ = ["BiEncoder"]


def __getattr__(name: str) -> Any:
    """Import torch only when the encoder is first asked for, so that `--help` stays instant."""
    if name == "BiEncoder":
        from minbert.bi_encoder import BiEncoder

        return BiEncoder
    raise AttributeError(f"module 'minbert' has no attribute {name!r}")
