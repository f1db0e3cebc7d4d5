"""The reader of an export's heads in its model card, which needs no module of this project."""

from __future__ import annotations

from serving.head_formulas import cleaning_of, formula_of, reason_without
from serving.model import MultiTaskModel

READER = """```python
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

folder = "DIR"
encoder = SentenceTransformer(folder, device="cpu")
weights = load_file(f"{{folder}}/heads.safetensors")


def linear(name, x):
    return F.linear(x, weights[f"{{name}}.weight"], weights[f"{{name}}.bias"])


{functions}
HEADS = {{  # task: how its texts are cleaned, its head, the columns of the result
{heads}
}}


@torch.inference_mode()
def predict(task, *columns):
    clean, head, names = HEADS[task]
    embeddings = []
    for texts in columns:
        features = encoder.tokenize([clean(text) for text in texts])
        for module in list(encoder)[:2]:  # without the normalisation that may follow
            features = module(features)
        embeddings.append(features["sentence_embedding"])
    return head(*embeddings)


print(predict({example}))
```"""


def reader(model: MultiTaskModel) -> str:
    """Return code that predicts with SentenceTransformer, torch and safetensors only.

    It has the heads that have a formula, and is empty if none has.
    """
    heads, examples = [], []
    functions: dict[str, None] = {}  # each once, in their order
    for name, task in model.tasks_by_name.items():
        formula, cleaning = formula_of(model, name), cleaning_of(task)
        if formula is None or cleaning is None:
            continue
        clean, source = cleaning
        functions |= {source: None} if source else {}
        arguments = "u, v" if task.texts == 2 else "u"
        names = list(task.kind.names)
        heads.append(f"    {name!r}: ({clean}, lambda {arguments}: {formula}, {names!r}),")
        columns = [["a film to love"], ["a play to love"]][: task.texts]
        examples.append(", ".join(map(repr, (name, *columns))))
    if not heads:
        return ""
    body = "\n\n".join(f"{one.rstrip()}\n" for one in functions)
    return READER.format(
        functions=f"{body}\n" if body else "",
        heads="\n".join(heads),
        example=examples[0],
    )


def reason_without_reader(model: MultiTaskModel, name: str) -> str | None:
    """Return why the reader does not have a head; None if it does."""
    if (reason := reason_without(model, name)) is not None:
        return reason
    if formula_of(model, name) is None:
        return "has no formula"
    if cleaning_of(model.tasks_by_name[name]) is None:
        return "needs its texts cleaned by further code"
    return None
