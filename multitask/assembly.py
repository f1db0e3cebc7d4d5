"""Construction of a configuration's tasks, model and data, and the scores of its teachers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from common.errors import RunError, SettingsError, one_line
from common.text import first_names
from minbert.bi_encoder import BiEncoder
from minbert.config import BiLSTMConfig
from minbert.device import choose_device, warn_if_slow
from minbert.folder import read_config
from minbert.precision import PrecisionChoice, choose_precision
from minbert.sources import NAMED_ENCODERS, find_folder
from multitask.config_tasks import build_tasks, plain_tasks, pretraining
from multitask.loop.evaluation import score_split
from multitask.model import EncoderWithHeads
from multitask.runs import Run
from multitask.settings.config import RunConfig
from multitask.splits import load_splits
from tasks import data_folder
from tasks.base import Task
from tasks.data import Split, tokenized
from tasks.objectives import with_class_weights
from tasks.readers import Examples, limit_of

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
    for name, task in chosen.items():
        if config.class_weights and task.kind.classes:
            targets = splits[name]["train"].examples.targets
            assert targets is not None, "train has labels"
            chosen[name], line = with_class_weights(task, targets)
            print(f"{name}: {line}", flush=True)
    return chosen, model, splits


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
    precision = bi_encoder.choose_precision(with_precision(config)[0].precision).precision
    dropout = config.pooling_dropout
    model = EncoderWithHeads(bi_encoder, chosen, config.seed, precision, config.own_layers, dropout)
    if start is not None:
        taken = model.load_matching(start)
        line = f"encoder initialised from {config.init}; its heads: {', '.join(taken) or 'none'}"
        print(line, flush=True)
    if config.freeze_encoder:
        model.freeze_encoder()
    return model.to(device)


def open_bi_encoder(source: str | Path, config: RunConfig) -> BiEncoder:
    """Return an encoder with the pooling and limit of tokens of a configuration."""
    found = BiEncoder.from_pretrained(source, config.pooling, config.max_tokens)
    if found.skipped_tensors:
        parts = first_names(found.skipped_tensors)
        print(one_line(f"encoder: left out what is not a part of it: {parts}"), flush=True)
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
        config = replace(config, max_tokens=max_tokens)
    run.warn_if_unfinished()
    bi_encoder = open_bi_encoder(best, config)
    tasks = build_tasks(config)
    model = EncoderWithHeads(bi_encoder, tasks, config.seed, own_layers=config.own_layers)
    model.load_heads(best)
    return config, tasks, model.to(choose_device(device))


def with_precision(config: RunConfig, began: str | None = None) -> tuple[RunConfig, str | None]:
    """Return the configuration with a precision in place of `auto`, and a line about the choice.

    It is one that the encoder allows, or that with which the run `began`, perhaps on another
    machine. The line is None if a precision was requested.
    """
    if config.precision != "auto":
        return config, None
    source = config.encoder if config.init is None else str(Run(config.init).weights())
    bilstm = source not in NAMED_ENCODERS and isinstance(
        read_config(find_folder(source)), BiLSTMConfig
    )
    choice = choose_precision("auto", choose_device(config.device), bilstm)
    if began is not None:
        choice = PrecisionChoice(began, "the run began with it")
    return replace(config, precision=choice.precision), str(choice)


def soft_targets(config: RunConfig) -> dict[str, Tensor]:
    """Return the teachers' mean scores, (n, C) or (n,), for the training examples of each task.

    Only tasks with a teacher, and with a weight of a term that learns from it, are in it. Print a
    line per task. Raise SettingsError if a teacher has none of the tasks, and RunError for a folder
    without a run, or if its task has other classes.
    """
    learning = [one for one in config.regularizers if one.learns_from_teacher]
    has_weight = {task for one in learning for task in one.by_task(config.tasks)}
    students = [name for name in config.tasks if name in has_weight]
    teachers: dict[str, list[Path]] = {}
    for folder in map(Path, config.teacher):
        taught = [name for name in Run(folder).config.tasks if name in students]
        if not taught:
            raise SettingsError(f"teacher: {folder} is not a run of {', '.join(students)}")
        for name in taught:
            teachers.setdefault(name, []).append(folder)
    found = {}
    for name, task in plain_tasks(config).items():
        runs = teachers.get(name, [])
        given = ", ".join(map(str, runs)) or "no teacher, only its labels"
        print(f"{name}: learns from {given}", flush=True)
        if runs:
            examples = task.read(data_folder(config.data), "train", limit_of(config.limit, name))
            several = [scores_of(run, config, task, examples) for run in runs]
            found[name] = torch.stack(several).mean(0)
    return found


def scores_of(folder: Path, config: RunConfig, task: Task, examples: Examples) -> Tensor:
    """Return one teacher's scores, (n, C) or (n,), of some examples.

    The teacher may have another encoder, tokeniser or head than the student: a cross-encoder
    teaches a bi-encoder.
    """
    stored, tasks, model = load_trained(folder, config.device)
    model.precision = stored.precision
    theirs, name = tasks[task.name], task.name
    if config.tasks[name].outputs != stored.tasks[name].outputs or (
        (task.kind.columns, task.kind.class_names) != (theirs.kind.columns, theirs.kind.class_names)
    ):
        raise RunError(f"{folder}: its task {task.name} has other classes than that of this run")
    split = tokenized(theirs, examples, model.bi_encoder.tokenizer)
    return torch.from_numpy(score_split(model, theirs, split))
