"""Export of a static student of a run's encoder, for sentence-transformers and model2vec."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from safetensors.torch import save_file
from tokenizers import normalizers

from common.json_files import write_json
from common.run_files import EXPORTED
from minbert.folder import write_modules
from minbert.tokenizer import Tokenizer
from multitask.config_tasks import training_texts
from multitask.storage.stored_config import without_paths
from reports.tables import markdown_table
from serving.model import MultiTaskModel
from serving.static import Student, distil

MODULES = {"StaticEmbedding": "", "Normalize": "1_Normalize"}
# sentence-transformers reads the first three keys, model2vec the last two.
SETTINGS: dict[str, Any] = {
    "prompts": {},
    "default_prompt_name": None,
    "similarity_fn_name": "cosine",
    "normalize": True,
    "max_length": None,
}
CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- static-embeddings
- model2vec
---

# Static student of {teacher}

A table with a vector of {width} numbers for each of {tokens:,} tokens. The embedding of a text is
the mean of the vectors of its tokens, scaled to unit length. The table was fitted to the embeddings
of the encoder {teacher}, trained on {tasks} ({teacher_width} wide).

## Use

```python
from sentence_transformers import SentenceTransformer

embeddings = SentenceTransformer("{folder}").encode(["A cat sleeps."])
```

model2vec opens it, too: `StaticModel.from_pretrained("{folder}").encode(["A cat sleeps."])`.

## Agreement with the encoder

{agreement}

The cosine is that of the encoder's embedding and the student's, mapped to the width of the encoder.
Before the fit, the table has the encoder's embeddings of single tokens, weighted by their
frequency. The held-out texts also chose the epoch at which the fit ended.

## Limits

- Word order has no effect: "dog bites man" and "man bites dog" have the same embedding, and the
  negation of a text is close to it.
- The vector of a token is the same in every text, whatever it means there.
- Unknown tokens count as zero; a text with only such tokens has the embedding zero.
- Tokens that are in none of the texts have less suitable vectors than others.
- The encoder reads at most {limit:,} tokens of a text, the student all of them.
- Heads of the run are not included; they need the encoder.
"""


class StaticSettings(NamedTuple):
    """Settings of a static student; None for the width, texts or random seed by default.

    By default, the texts are the training texts of the run, and the seed is the run's.
    """

    width: int | None = None
    texts: Sequence[str] | None = None
    seed: int | None = None


def write_static(
    model: MultiTaskModel, folder: Path, settings: StaticSettings, repo: str | None = None
) -> None:
    """Distil the encoder of a run, and write its student and model card into an empty folder.

    Raise as `distil` does.
    """
    config, encoder = model.config, model.model.bi_encoder
    texts = training_texts(config) if settings.texts is None else settings.texts
    seed = config.seed if settings.seed is None else settings.seed
    student = distil(encoder, texts, settings.width, seed, progress=True)
    save_student(student, encoder.tokenizer, folder)
    write_json(folder / EXPORTED, without_paths(config))
    (folder / "README.md").write_text(static_card(model, student, repo or "DIR"), "utf-8")


def save_student(student: Student, tokenizer: Tokenizer, folder: Path) -> None:
    """Write the files that sentence-transformers and model2vec read."""
    save_file({"embedding.weight": student.table}, folder / "model.safetensors")
    backend = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    backend.no_truncation()
    if tokenizer.lower:
        parts = [normalizers.Lowercase()] + [backend.normalizer] * (backend.normalizer is not None)
        backend.normalizer = normalizers.Sequence(parts)
    backend.save(str(folder / "tokenizer.json"))
    write_modules(folder, MODULES)
    write_json(folder / "config_sentence_transformers.json", SETTINGS)


def static_card(model: MultiTaskModel, student: Student, folder: str) -> str:
    """Return the card as Markdown; `folder` is a hub name, or DIR."""
    tokens, width = student.table.shape
    rows = [
        ["texts of the fit", f"{student.texts:,}"],
        ["held-out texts", f"{student.held_out:,}"],
        ["mean cosine on them before the fit", f"{student.untrained:.4f}"],
        ["after the fit", f"{student.cosine:.4f}"],
    ]
    return CARD.format(
        teacher=Path(model.config.encoder).name,
        tasks=", ".join(model.tasks),
        teacher_width=model.model.bi_encoder.width,
        limit=model.model.bi_encoder.tokenizer.longest,
        folder=folder,
        tokens=tokens,
        width=width,
        agreement=markdown_table(["measure", "value"], rows),
    )
