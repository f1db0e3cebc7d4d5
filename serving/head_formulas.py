"""Heads as formulas in Python, for a reader that needs no module of this project.

A formula of embeddings `u`, and `v` of a second text, uses `torch`, `F` and the function
`linear(name, x)` of a layer in `heads.safetensors`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from serving.model import MultiTaskModel
from tasks.base import Task
from tasks.contrastive import FirstView
from tasks.heads import (
    ACTIVATIONS,
    CosineSimilarity,
    HiddenClassifier,
    OneNumber,
    PairClassifier,
    PoolsTokens,
    SoftmaxClassifier,
)
from tasks.labelled_files import files_of

CODE_OF_ACTIVATIONS = {"relu": "{}.relu()", "sigmoid": "{}.sigmoid()", "none": "{}"}
SCORES = ("{}.softmax(-1)", "{}.sigmoid()")  # of a head's outputs
PROBE = "  It's A Film, Isn't  it? "


def of_cosine(head: CosineSimilarity, name: str) -> str:
    hidden = isinstance(head.hidden, nn.Linear)
    u, v = (f'linear("{name}.hidden", {one})' if hidden else one for one in "uv")
    (activation,) = [key for key, one in ACTIVATIONS.items() if one is head.activation]
    cosine = f"F.cosine_similarity({u}, {v})"
    return f"{CODE_OF_ACTIVATIONS[activation].format(cosine)} * {head.scale}"


def of_hidden(name: str) -> str:
    return f'linear("{name}.output", linear("{name}.hidden", u).relu())'


def of_number(head: OneNumber, name: str) -> str:
    return f"{FORMULAS[type(head.head)](head.head, f'{name}.head')}.squeeze(-1)"


def of_pair(head: PairClassifier, name: str) -> str:
    parts = "[u, v, (u - v).abs()]" if head.difference else "[u, v]"
    return f'linear("{name}.output", linear("{name}.hidden", torch.cat({parts}, -1)).relu())'


# Class of a head -> the formula of its outputs, from the head and the name of its weights.
FORMULAS: Mapping[type[nn.Module], Callable[[Any, str], str]] = {
    SoftmaxClassifier: lambda head, name: f'linear("{name}.output", u)',
    HiddenClassifier: lambda head, name: of_hidden(name),
    OneNumber: of_number,
    PairClassifier: of_pair,
    CosineSimilarity: of_cosine,
    FirstView: lambda head, name: FORMULAS[type(head.head)](head.head, f"{name}.head"),
}


def reason_without(model: MultiTaskModel, name: str) -> str | None:
    """Return why a head does not read the embeddings of single texts; None if it does."""
    if isinstance(model.model.heads[name], PoolsTokens):
        return "pools the tokens itself"
    if model.tasks_by_name[name].joint:
        return "reads both texts of a pair as one sequence"
    return None


def exported_heads(model: MultiTaskModel) -> list[str]:
    """Return the tasks whose heads read the embeddings of single texts."""
    return [name for name in model.tasks if reason_without(model, name) is None]


def shown_scores(task: Task, scores: Tensor) -> Tensor:
    """Return scores in the units of the task's files: probabilities, or numbers on their scale."""
    if task.kind.columns is not None or task.output is None:
        return scores
    zero, one = (float(task.output.show(np.float32(value))) for value in (0.0, 1.0))
    return scores if (zero, one) == (0.0, 1.0) else scores * (one - zero) + zero


def formula_of(model: MultiTaskModel, name: str) -> str | None:
    """Return the formula of a head's probabilities (B, C) or numbers (B,); None without one.

    The formula is compared with the head on random embeddings.
    """
    task, head = model.tasks_by_name[name], model.model.heads[name]
    make = FORMULAS.get(type(head))
    if make is None or reason_without(model, name) is not None:
        return None
    generator = torch.Generator().manual_seed(0)
    encoder = model.model.bi_encoder
    texts = torch.randn(task.texts, 8, encoder.width, generator=generator)
    weights = {key: value.cpu() for key, value in model.model.heads.state_dict().items()}
    with torch.inference_mode():
        expected = shown_scores(task, task.scores(head, tuple(texts.to(encoder.device)))).cpu()
        outputs = make(head, name)
        for form in SCORES if task.kind.columns is not None else forms_of_numbers(task):
            code = form.format(outputs)
            found = evaluated(code, weights)(*texts)
            if found.shape == expected.shape and torch.allclose(found, expected, atol=1e-5):
                return code
    return None


def forms_of_numbers(task: Task) -> tuple[str, ...]:
    """Return forms of numbers: a head's outputs, or a linear function of them."""
    low, high = shown_scores(task, task.kind.scores(torch.tensor([0.0, 1.0]))).tolist()
    factor = "" if high - low == 1 else f" * {high - low}"
    return "{}", f"{{}}{factor} + {low}"


def evaluated(code: str, weights: Mapping[str, Tensor]) -> Callable[..., Tensor]:
    """Return the function of one or two embeddings (B, H) that a formula describes."""

    def linear(name: str, x: Tensor) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    names: dict[str, Any] = {"torch": torch, "F": F, "linear": linear}
    found: Callable[..., Tensor] = eval(f"lambda u, v=None: {code}", names)
    return found


def cleaning_of(task: Task) -> tuple[str, str] | None:
    """Return the name and the source of the function that cleans a task's texts.

    None if it needs more than itself.
    """
    clean = files_of(task.source).clean_text
    if clean is str.strip:
        return "str.strip", ""
    names: dict[str, Any] = {}
    try:
        source = inspect.getsource(clean)
        exec(source, names)
        same = names[clean.__name__](PROBE) == clean(PROBE)
    except (OSError, TypeError, SyntaxError, NameError, KeyError):
        return None
    return (clean.__name__, source) if same else None
