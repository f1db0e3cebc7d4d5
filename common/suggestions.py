"""Suggestions for names that do not exist: misspelt ones, and those of other libraries."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

CUTOFF = 0.7  # minimum similarity (difflib's ratio) of a name suggested for a misspelt one
# Names here, and those of the same settings in other libraries.
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


def suggestion(value: Any, names: Iterable[str]) -> str:
    """Return the end of a message with the name that was meant; empty if no name is similar.

    That is the name here of a setting of other libraries, the same name with other hyphens, or the
    most similar name.
    """
    if not isinstance(value, str):
        return ""
    known = {name.replace("-", "_"): name for name in names}
    word = value.replace("-", "_").lower()
    meant = [word, *(here for here, others in OTHER_NAMES.items() if word in others.split())]
    near = [known[one] for one in meant if one in known]
    near = near or get_close_matches(value, [*known.values()], 1, CUTOFF)
    return f"; did you mean {near[0]}?" if near else ""
