"""Construction of a configuration's model and data; `config_tasks.py` builds its tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from common.errors import RunError, SettingsError, one_line
from common.files import BRANCHES, HEADS
from minbert.bi_encoder import BiEncoder
from minbert.config import transformer_config
from minbert.device import choose_device, warn_if_slow
from multitask.config_tasks import build_tasks, pretraining
from multitask.model import EncoderWithHeads, load_matching
from multitask.precision import precision_of
from multitask.runs import Run
from multitask.settings.config import RunConfig
from multitask.settings.rules import has_class_weights
from multitask.splits import load_splits
from tasks.base import Task
from tasks.class_weights import with_class_weights
from tasks.data import Split, Splits
from tasks.own_task import complete_task, tasks_by_name

# Tasks by name, the model on its device, and the data of each task by split.
Assembly = tuple[dict[str, Task], EncoderWithHeads, dict[str, dict[str, Split]]]


def assemble(
    config: RunConfig,
    make_tasks: Callable[[RunConfig], dict[str, Task]] = build_tasks,
) -> Assembly:
    """Build tasks, model and data of a configuration; raise UserError in one line."""
    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    chosen = make_tasks(config)
    if config.pretrains:
        for line in pretraining().overlap_lines(config, chosen):
            print(line, flush=True)
    model = build_model(config, chosen, device)
    splits = load_splits(config, chosen, model.bi_encoder)
    return weighted(config, chosen, splits), model, splits


def weighted(config: RunConfig, chosen: Mapping[str, Task], splits: Splits) -> dict[str, Task]:
    """Return the tasks with the weights of their classes in the loss; print the weights.

    The classes are counted in the training split. Raise RunError for a task of another loss.
    """
    found = dict(chosen)
    for name, task in chosen.items():
        if has_class_weights(config, task):
            targets = splits[name]["train"].examples.targets
            assert targets is not None, "train has labels"
            found[name], line = with_class_weights(task, targets)
            print(f"{name}: {line}", flush=True)
    return found


def build_model(
    config: RunConfig, chosen: Mapping[str, Task], device: torch.device
) -> EncoderWithHeads:
    """Return encoder and heads, from the encoder or, with `init`, from a run's best epoch."""
    start = None
    if config.init is not None:
        run = Run(Path(config.init))
        start, brought = run.weights(), run.config.encoder
        if config.encoder != brought:
            line = f"expected {brought}, the encoder of init, found {config.encoder}"
            raise SettingsError(f"encoder: {line}")
    bi_encoder = open_bi_encoder(start or config.encoder, config)
    precision = precision_of(config).precision
    if precision == "bf16":
        transformer_config("precision bf16", bi_encoder.encoder.config)
    dropout = config.pooling_dropout
    model = EncoderWithHeads(bi_encoder, chosen, config.seed, precision, config.own_layers, dropout)
    if start is not None:
        init_from_run(model, config, start)
    if config.freeze_encoder:
        model.freeze_encoder()
    return model.to(device)


def init_from_run(model: EncoderWithHeads, config: RunConfig, weights: Path) -> None:
    """Take over the heads and branches of the run `init` that fit, and print which these are.

    `weights` is the folder of its best epoch, from which the encoder was read.
    """
    stored = Run(Path(str(config.init))).settings
    theirs = tasks_by_name(stored["tasks"])
    names = [  # a task of this name may have other classes there
        name
        for name in model.heads
        if name not in theirs or complete_task(theirs[name]).outputs == config.tasks[name].outputs
    ]
    heads = load_matching(model.heads, weights / HEADS, names)
    print(f"heads initialised from {config.init}: {', '.join(heads) or 'none'}", flush=True)
    if config.branch is not None or stored.get("branch"):
        same = stored.get("branch") == config.to_json()["branch"]
        branches = load_matching(model.branches, weights / BRANCHES, names if same else ())
        line = f"branches initialised from {config.init}: {', '.join(branches) or 'none'}"
        print(line, flush=True)


def open_bi_encoder(source: str | Path, config: RunConfig) -> BiEncoder:
    """Return an encoder with the pooling and limit of tokens of a configuration."""
    found = BiEncoder.from_pretrained(source, config.pooling, config.max_tokens)
    if found.skipped_tensors:
        print(one_line(f"encoder: without {', '.join(found.skipped_tensors)}"), flush=True)
    return found


def load_trained(
    folder: Path,
    device: str = "auto",
    max_tokens: int | None = None,
) -> tuple[RunConfig, dict[str, Task], EncoderWithHeads]:
    """Return configuration, tasks and model (fp32) of a run's best epoch, or of an exported run.

    `max_tokens` replaces the run's limit of tokens. Raise RunError, SettingsError or EncoderError
    in one line, and warn if the run has not finished.
    """
    run = Run(folder)
    best, config = run.weights(), run.config
    if config.pretrains:
        raise RunError(f"{folder}: expected a run of tasks, found one of mode pretrain")
    if max_tokens is not None:
        config = config.changed(max_tokens=max_tokens)
    run.warn_if_unfinished()
    bi_encoder = open_bi_encoder(best, config)
    tasks = build_tasks(config)
    model = EncoderWithHeads(bi_encoder, tasks, config.seed, own_layers=config.own_layers)
    model.load_heads(best)
    return config, tasks, model.to(choose_device(device))
