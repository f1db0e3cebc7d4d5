"""Upload of an encoder to the Hugging Face hub, with its model card."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from common.hub import upload
from minbert.encoder import Encoder

if TYPE_CHECKING:
    from minbert.bi_encoder import BiEncoder


def push_encoder(
    model: BiEncoder, repo: str, private: bool, token: str | None, message: str
) -> str:
    """Upload the folder of `save_pretrained` with a model card; return its address."""
    with TemporaryDirectory() as place:
        model.save_pretrained(place)
        (Path(place) / "README.md").write_text(encoder_card(model, repo), "utf-8")
        return upload(Path(place), repo, private, token, message)


def encoder_card(model: BiEncoder, repo: str) -> str:
    """Return the model card of an encoder as Markdown, with the metadata of the hub."""
    normalised = ", normalised" if model.normalize else ""
    uses = [f"from minbert import BiEncoder\n\nBiEncoder.from_pretrained({repo!r})"]
    library = "minbert-multitask"
    if isinstance(model.encoder, Encoder):
        library, name = "sentence-transformers", "SentenceTransformer"
        uses.append(f"from sentence_transformers import {name}\n\n{name}({repo!r})")
    examples = "\n\n".join(f'```python\n{use}.encode(["A cat sleeps."])\n```' for use in uses)
    return (
        f"---\nlibrary_name: {library}\npipeline_tag: sentence-similarity\n---\n\n"
        f"# {repo.rpartition('/')[2]}\n\nA sentence encoder: {model.width} wide, {model.pooling} "
        f"pooling{normalised}, texts of at most {model.tokenizer.max_tokens} tokens.\n\n"
        f"## Use\n\n{examples}\n"
    )
