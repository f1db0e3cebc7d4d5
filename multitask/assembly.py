"""Construction of a configuration's tasks, model and data, and the scores of its teachers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor

from common.errors import RunError, SettingsError, all_names, counted, first_names, one_line
from minbert.bi_encoder import BiEncoder
from minbert.bilstm import BiLSTM
from minbert.device import choose_device, warn_if_slow
from minbert.precision import choose_precision
from minbert.tokenizer import Tokenizer, truncation
from multitask.config_tasks import PRETRAINING, build_tasks, plain_tasks
from multitask.loop.evaluation import score_split
from multitask.model import EncoderWithHeads
from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks import data_folder
from tasks.base import Task
from tasks.data import Split, tokenized
from tasks.kinds import known_rows
from tasks.objectives import with_class_weights
from tasks.readers import Examples, limit_of
from tasks.splits import doubts, reading_notices


def assemble(
    config: RunConfig, make_tasks: Callable[[RunConfig], dict[str, Task]] = build_tasks
) -> tuple[dict[str, Task], EncoderWithHeads, dict[str, dict[str, Split]]]:
    """Return the tasks of a configuration, the model on its device, and the splits of each task.

    Print what the splits hold, and what was left out of them. Raise UserError in one line.
    """
    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    chosen = make_tasks(config)
    if config.pretrains:
        for line in import_module(PRETRAINING).overlap_lines(config, chosen):
            print(line, flush=True)
    model, folder = build_model(config, chosen, device), data_folder(config.data)
    tokenizer = model.bi_encoder.tokenizer
    splits: dict[str, dict[str, Split]] = {}
    for name, task in chosen.items():
        train = limit_of(config.limit, name)
        limits = {"train": train, "dev": config.dev_limit, "test": config.test_limit}
        examples = {split: task.read(folder, split, limits[split]) for split in task.source.splits}
        splits[name] = {s: tokenized(task, one, tokenizer) for s, one in examples.items()}
        found = [*notices_of(config, task, splits[name], tokenizer)]
        found += [] if config.pretrains else doubts(task, examples)
        if config.class_weights and task.kind.classes:
            targets = examples["train"].targets
            assert targets is not None, "train has labels"
            chosen[name], line = with_class_weights(task, targets)
            found.append(line)
        for line in found:
            print(f"{name}: {line}", flush=True)
    for name, soft in (soft_targets(config) if config.teacher else {}).items():
        splits[name]["train"] = replace(splits[name]["train"], soft=soft)
    return chosen, model, splits


def notices_of(
    config: RunConfig, task: Task, splits: Mapping[str, Split], tokenizer: Tokenizer
) -> Iterator[str]:
    """Yield what the splits of a task hold, and what was left out of them."""
    examples = {split: loaded.examples for split, loaded in splits.items()}
    counts = ", ".join(f"{split} {len(one):,}" for split, one in examples.items())
    yield f"{counts} examples"
    if task.name in config.own_tasks:
        yield from config.own_tasks[task.name].lines()
    targets = examples["test"].targets if "test" in examples else None
    if targets is not None and (blank := int((~known_rows(targets)).sum())):
        yield f"{counted(blank, 'test example')} without a label: predicted, not scored"
    yield from reading_notices(task, data_folder(config.data), examples)
    for split, loaded in splits.items():
        cut, texts = loaded.cut
        if cut:
            what = f"{split} {'pairs' if task.joint else 'texts'}"
            yield truncation(cut, texts, what, tokenizer.max_tokens)


def build_model(
    config: RunConfig, chosen: Mapping[str, Task], device: torch.device
) -> EncoderWithHeads:
    """Return encoder and heads, from the encoder or, with `init`, from a run's best epoch."""
    start = None
    if config.init is not None:
        run = Run(Path(config.init))
        start, brought = run.weights(), run.config.encoder
        if config.encoder != brought:
            line = f"expected {brought}, as in the run of init, found {config.encoder}"
            raise SettingsError(f"encoder: {line}")
    bi_encoder = open_bi_encoder(start or config.encoder, config)
    bilstm = isinstance(bi_encoder.encoder, BiLSTM)
    choice = choose_precision(config.precision, device, bilstm)
    if config.precision == "auto":
        print(choice, flush=True)
    settings = choice.precision, config.own_layers, config.pooling_dropout
    model = EncoderWithHeads(bi_encoder, chosen, config.seed, *settings)
    if start is not None:
        taken = model.load_matching(start)
        heads = f"the head of {all_names(taken)}" if taken else "new heads"
        print(f"starts with the encoder of {config.init} and {heads}", flush=True)
    if config.freeze_encoder:
        model.freeze_encoder()
    return model.to(device)


def open_bi_encoder(source: str | Path, config: RunConfig) -> BiEncoder:
    """Return an encoder with the pooling and limit of tokens of a configuration."""
    found = BiEncoder.from_pretrained(source, config.pooling, config.max_tokens)
    if found.skipped_tensors:
        parts = first_names(found.skipped_tensors)
        line = f"encoder: not used, as is usual for heads of its pre-training: {parts}"
        print(one_line(line), flush=True)
    return found


def load_trained(
    folder: Path, device: str = "auto", max_tokens: int | None = None
) -> tuple[RunConfig, dict[str, Task], EncoderWithHeads]:
    """Return configuration, tasks and model (fp32) of a run's best epoch, or of an exported run.

    `max_tokens` replaces the run's limit of tokens. Raise RunError, SettingsError or EncoderError
    in one line, and warn if the run has not finished.
    """
    run = Run(folder)
    best, config = run.weights(), run.config
    if config.pretrains:
        raise RunError(f"{folder}: a run of mode pretrain has no tasks; train on from it by --init")
    if max_tokens is not None:
        config = replace(config, max_tokens=max_tokens)
    run.warn_if_unfinished()
    bi_encoder = open_bi_encoder(best, config)
    tasks = build_tasks(config)
    model = EncoderWithHeads(bi_encoder, tasks, config.seed, own_layers=config.own_layers)
    model.load_heads(best)
    return config, tasks, model.to(choose_device(device))


def soft_targets(config: RunConfig) -> dict[str, Tensor]:
    """Return the teachers' mean scores, (n, C) or (n,), for the training examples of each task.

    Only tasks with a teacher, and with a weight of a term that learns from it, are in it. Print a
    line per task. Raise SettingsError if a teacher has none of the tasks, and RunError for a folder
    without a run, or if its task has other classes.
    """
    terms = [one.by_task(config.tasks) for one in config.regularizers if one.learns_from_teacher]
    students = [name for name in config.tasks if any(name in weights for weights in terms)]
    teachers = [(folder, Run(folder).config.tasks) for folder in map(Path, config.teacher)]
    for folder, taught in teachers:
        if not any(name in taught for name in students):
            raise SettingsError(f"teacher: {folder} has none of the tasks {', '.join(students)}")
    found = {}
    for name, task in plain_tasks(config).items():
        runs = [folder for folder, taught in teachers if name in taught and name in students]
        given = ", ".join(map(str, runs)) or "its labels only"
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
        raise RunError(f"{folder}: the classes of task {task.name} differ from those of this run")
    split = tokenized(theirs, examples, model.bi_encoder.tokenizer)
    return torch.from_numpy(score_split(model, theirs, split))
