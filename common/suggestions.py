"""Suggestions for names that do not exist: misspelt ones, and those of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

CUTOFF = 0.7  # minimum similarity (difflib's ratio) of a name suggested for a misspelt one
# Names here, and those of the same settings in other libraries, with underscores.
OTHER_NAMES = {
    "lr": "learning_rate lr_rate encoder_lr",
    "epochs": "num_epochs num_train_epochs max_epochs n_epochs",
    "encoder": "model model_name model_name_or_path pretrained",
    "run": "model model_path checkpoint",
    "batch_size": "bs train_batch_size per_device_train_batch_size",
    "seed": "random_seed",
    "clip": "max_grad_norm gradient_clip_val",
    "patience": "early_stopping early_stopping_patience",
    "sampling": "sampler",
    "lr_schedule": "scheduler lr_scheduler lr_scheduler_type",
    "warmup": "warmup_ratio warmup_proportion",
    "limit": "max_train_samples train_limit",
    "data": "data_dir dataset",
    "output": "output_dir save_dir out",
}


def suggestion(
    value: Any,
    names: Iterable[str],
    others: Mapping[str, str] = OTHER_NAMES,
    cutoff: float = CUTOFF,
) -> str:
    """Return the end of a message with the name that was meant; empty if no name is similar.

    That is the same name in other letters or with other hyphens, else the names for which `others`
    has this word, else the most similar name, if the similarity is at least `cutoff`.
    """
    if not isinstance(value, str):
        return ""
    known, word = {normal(name): name for name in names}, normal(value)
    meant = [word, *(here for here, words in others.items() if word in words.split())]
    near = [one for one in (meant[:1] if word in known else meant) if one in known]
    near = near or get_close_matches(word, known, 1, cutoff)
    return f"; did you mean {' or '.join(known[one] for one in near)}?" if near else ""


def normal(name: str) -> str:
    """Return a name in lower case, with underscores in place of hyphens."""
    return name.replace("-", "_").lower()
