"""The kinds of an export: what each is for, its files, and the code in its card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SENTENCES = """```python
from sentence_transformers import SentenceTransformer

embeddings = SentenceTransformer("DIR").encode(["A cat sleeps."])
```"""
PLAIN = """```python
from transformers import AutoModel, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("DIR"), AutoModel.from_pretrained("DIR")
inputs = tokenizer(["A cat sleeps."], padding=True, truncation=True, return_tensors="pt")
hidden = model(**inputs).last_hidden_state
```"""
ONNX = """```python
from onnxruntime import InferenceSession
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("DIR")
inputs = tokenizer(["A cat sleeps."], padding=True, truncation=True, return_tensors="np")
inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
embeddings, pooled = InferenceSession("DIR/model.onnx").run(None, inputs)
```"""
OURS = """```python
from serving import MultiTaskModel

embeddings = MultiTaskModel.load("DIR").encode(["A cat sleeps."])
```

In a run with branches, `encode(..., task=...)` chooses the task whose layers the encoder has."""
ONNX_HEADS = """`heads.onnx` maps `pooled`, the embeddings before any normalisation, of texts
(`first`) and of the second texts of pairs (`second`) to one output per task.

```python
heads = InferenceSession("DIR/heads.onnx")
inputs = {one.name: pooled for one in heads.get_inputs()}
found = dict(zip([one.name for one in heads.get_outputs()], heads.run(None, inputs)))
```"""


def write_for_sentence_transformers(model: Any, folder: Path) -> None:
    """Write encoder, tokenizer and heads, with the modules of pooling and normalisation."""
    model.model.save(folder)


def write_for_transformers(model: Any, folder: Path) -> None:
    """Write encoder, tokenizer and heads, without files of sentence-transformers."""
    from minbert.folder import save_encoder, write_embedding, write_limit

    bi_encoder = model.model.bi_encoder
    save_encoder(bi_encoder.encoder, folder)
    bi_encoder.tokenizer.save(folder)
    model.model.save_heads(folder)
    # These are in files that transformers does not read.
    write_limit(folder, bi_encoder.sentence_settings)
    write_embedding(folder, bi_encoder.sentence_settings)


def write_with_onnx(model: Any, folder: Path) -> None:
    """Write the files for sentence-transformers, and the graphs of encoder and heads."""
    from serving.onnx_export import write_heads, write_onnx

    write_for_sentence_transformers(model, folder)
    write_onnx(model.model.bi_encoder, folder / "model.onnx")
    write_heads(model, folder / "heads.onnx")


def without_reader(model: Any, task: str) -> str | None:
    """Return why the code of the card does not have a head; None if it does."""
    from serving.card_reader import reason_without_reader

    return reason_without_reader(model, task)


def without_graph(model: Any, task: str) -> str | None:
    """Return why `heads.onnx` does not have a head; None if it does."""
    from serving.head_formulas import reason_without

    return reason_without(model, task)


def code_of_reader(model: Any) -> list[str]:
    """Return code that predicts with sentence-transformers, torch and safetensors only."""
    from serving.card_reader import reader

    if not (code := reader(model)):
        return []
    return ["The same predictions need only sentence-transformers, torch and safetensors:", code]


def code_of_graph(model: Any) -> list[str]:
    """Return code that uses `heads.onnx`, if there is one."""
    from serving.head_formulas import exported_heads

    return [ONNX_HEADS] if exported_heads(model) else []


@dataclass(frozen=True)
class ExportKind:
    """A kind of export.

    `help` says what it is for. `write` writes encoder, tokenizer and heads to an empty folder.
    `package` must be installed for it. An export that `keeps_branches` has those of all tasks; the
    encoder of the others has the layers of one task. The card has the code `use`. For
    other libraries, `reason_without` says why a head is not in the export (None: it is, or the kind
    has no such part), and `heads_elsewhere` returns the parts of the card about the heads.
    """

    help: str
    write: Callable[[Any, Path], None]
    use: str
    package: str | None = None
    keeps_branches: bool = False
    reason_without: Callable[[Any, str], str | None] = lambda model, task: None
    heads_elsewhere: Callable[[Any], list[str]] = lambda _: []


KINDS = {
    "sentence-transformers": ExportKind(
        "SentenceTransformer(DIR) returns the same embeddings",
        write_for_sentence_transformers,
        SENTENCES,
        reason_without=without_reader,
        heads_elsewhere=code_of_reader,
    ),
    "transformers": ExportKind(
        "AutoModel and AutoTokenizer open it", write_for_transformers, PLAIN
    ),
    "onnx": ExportKind(
        "also model.onnx, from ids and mask to embeddings, and heads.onnx, to scores",
        write_with_onnx,
        ONNX,
        package="onnx",
        reason_without=without_graph,
        heads_elsewhere=code_of_graph,
    ),
    "minbert": ExportKind(
        "one folder with the branches of all tasks, which only this toolkit opens",
        write_for_sentence_transformers,
        OURS,
        keeps_branches=True,
    ),
}
DEFAULT = "sentence-transformers"
