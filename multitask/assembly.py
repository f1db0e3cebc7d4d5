"""Construction of tasks, model and data from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from common.errors import RunError, SettingsError, one_line
from minbert.bi_encoder import BiEncoder
from minbert.bilstm import BiLSTM
from minbert.config import PRECISIONS, transformer_config
from minbert.device import choose_device, warn_if_slow
from minbert.sizes import trained_sizes
from multitask.model import EncoderWithHeads
from multitask.precision import training_precision
from multitask.settings.config import RunConfig
from multitask.settings.imbalance_rules import imbalance_of
from multitask.settings.methods import UserMethods
from multitask.settings.objective_rules import smoothing_of
from multitask.settings.rules import reading_rules
from multitask.settings.run_settings import READING
from multitask.splits import load_splits
from multitask.storage.run_folder import RunFolder
from multitask.storage.stored_config import stored_run_errors
from multitask.storage.unfinished import warn_if_unfinished
from tasks import CS224N, build_task, data_folder
from tasks.base import Task
from tasks.data import Split, Splits
from tasks.heads import InitializesFromNames
from tasks.imbalance import weights_line, with_imbalance
from tasks.kinds import on_scale, smoothed, with_main_metric
from tasks.labelled_files import Source
from tasks.objectives import with_objective
from tasks.own_tasks import rows_key
from tasks.protocols import apply_protocol
from tasks.readers import limit_of, to_number
from tasks.silver import with_silver
from tasks.task_description import from_json, output_signature


class Assembly(NamedTuple):
    """Tasks and their data by name, and the model on its device."""

    tasks: dict[str, Task]
    model: EncoderWithHeads
    splits: dict[str, dict[str, Split]]


def build_tasks(config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a configuration by name, in its order, with its objective.

    Tasks of pre-training have the name of their objective. `plain_tasks` ignores the objective.
    """
    if config.pretraining_objective is not None:
        return config.pretraining_objective.tasks(config)
    tasks, objective = plain_tasks(config), config.task_objective
    if objective is None:
        return tasks
    return {name: with_objective(task, objective) for name, task in tasks.items()}


def plain_tasks(config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a configuration with their own losses, whatever the objective is.

    This function also works for pre-training, for example to read the files of the tasks.
    """
    names = CS224N if config.leaks_of == "all" else ()
    course = {name: build_task(name).source for name in names}
    tasks: dict[str, Task] = {}
    for name in (*config.main_tasks, *config.auxiliary):
        apart = split_apart(config, name)
        held_out: dict[str, Source] = {n: config.options_of(n).build().source for n in apart}
        if config.drop_leaks:
            held_out |= course
        task = config.options_of(name).build()
        if task.kind.similarities:
            task = replace(task, kind=on_scale(task.kind, config.similarity_scale))
        if share := smoothing_of(config, name):
            task = with_smoothing(task, share)
        auxiliary = name in config.auxiliary
        if auxiliary:  # always without dev and test of the tasks that count
            held_out = course | {main: tasks[main].source for main in config.main_tasks}
        others = tuple(held_out.values()) if held_out or config.drop_leaks else None
        source = apply_protocol(task, config.protocol, config.seed, others)
        tasks[name] = replace(task, source=source, auxiliary=auxiliary)
    tasks = {name: tasks[name] for name in config.tasks}
    further = [build_task(name).source for name in CS224N]
    tasks = with_silver(tasks, config.own_tasks, config.silver, further, config.drop_leaks)
    return tasks if config.select_by is None else selected_by(tasks, config.select_by)


def split_apart(config: RunConfig, name: str) -> list[str]:
    """Return the other own tasks that split the file of an own task in another way.

    Each task without a table splits the rows that have its label, so that a row may be in train of
    one task and in dev or test of another.
    """
    if name not in config.own_tasks:
        return []
    described = {one: from_json(one, content) for one, content in config.own_tasks.items()}
    mine = described.pop(name)
    if mine.dev is not None:
        return []
    return [
        one
        for one, other in described.items()
        if other.dev is None
        and Path(other.train).resolve() == Path(mine.train).resolve()
        and (mine.table is None or rows_key(other) != rows_key(mine))
    ]


def with_smoothing(task: Task, share: float) -> Task:
    """Return a task with smoothed labels.

    Raise SettingsError for a loss other than cross-entropy.
    """
    try:
        return replace(task, kind=smoothed(task.kind, share))
    except ValueError as error:
        raise SettingsError(f"label_smoothing: {error}, found {task.name}") from error


def selected_by(tasks: Mapping[str, Task], metric: str) -> dict[str, Task]:
    """Return the tasks with `metric` as main metric, where a task has it, to select the best epoch.

    All tasks with classes or labels have `macro_f1`. Raise SettingsError if no task has the metric.
    """
    kinds = {
        name: kind
        for name, task in tasks.items()
        if not task.auxiliary and (kind := with_main_metric(task.kind, metric))
    }
    if not kinds:
        available = "; ".join(
            f"{name} has {', '.join(task.kind.metric_names)}"
            for name, task in tasks.items()
            if not task.auxiliary
        )
        raise SettingsError(f"select_by {metric}: expected a metric of the tasks: {available}")
    return {n: replace(t, kind=kinds[n]) if n in kinds else t for n, t in tasks.items()}


def training_texts(config: RunConfig) -> list[str]:
    """Return all texts of the training examples, whatever the objective is."""
    return [
        text
        for task in plain_tasks(config).values()
        for column in task.read(
            data_folder(config.data), "train", limit_of(config.limit, task.name)
        ).texts
        for text in column
    ]


def assemble(
    config: RunConfig,
    make_tasks: Callable[[RunConfig], dict[str, Task]] = build_tasks,
    verbose: bool = False,
) -> Assembly:
    """Build tasks, model and data of a configuration; raise UserError in one line.

    `verbose` reports the encoder's tensors that are not used.
    """
    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    chosen = make_tasks(config)
    if config.pretrains:
        for line in config.pretraining_objective.notices(config, chosen):
            print(line, flush=True)
    model = build_model(config, chosen, device, verbose)
    splits = load_splits(config, chosen, model.bi_encoder)
    return Assembly(rebalanced(config, chosen, splits), model, splits)


def rebalanced(config: RunConfig, chosen: Mapping[str, Task], splits: Splits) -> dict[str, Task]:
    """Return the tasks with their losses for imbalanced classes; print the weights of the classes.

    The classes are counted in the training split. Raise RunError for a task of another loss.
    """
    found = dict(chosen)
    for name, task in chosen.items():
        if (how := imbalance_of(config, name)) is None:
            continue
        targets = splits[name]["train"].examples.targets
        assert targets is not None, "train has labels"
        try:
            found[name] = with_imbalance(task, how, targets)
        except ValueError as error:
            raise RunError(f"{name}: {error}, for the losses of imbalanced classes") from error
        if how.weights is not None:
            print(f"{name}: {weights_line(task, how, targets)}", flush=True)
    return found


def report_skipped(encoder: BiEncoder) -> None:
    """Print the tensors of the encoder's folder that are not used, if there are any."""
    if skipped := ", ".join(encoder.skipped_tensors):
        print(one_line(f"skipped tensors of the encoder: {skipped}"), flush=True)


def build_model(
    config: RunConfig, chosen: Mapping[str, Task], device: torch.device, verbose: bool = False
) -> EncoderWithHeads:
    """Return encoder and heads, from the encoder or, with `init`, from a run's best epoch."""
    source, bi_encoder = start_encoder(config)
    precision = checked_precision(config, bi_encoder, device)
    bi_encoder.sizes = trained_sizes(config.widths, config.exits, bi_encoder.size)
    if verbose:
        report_skipped(bi_encoder)
    model = EncoderWithHeads(bi_encoder, chosen, config.seed, precision, config.adapter)
    for name in chosen:
        if len(model.sizes) > 1 and model.pooling_of(name) is not None:
            expected = "heads that read embeddings of the encoder's pooling"
            raise SettingsError(f"widths and exits: expected {expected}, found that of {name}")
    if config.task_objective is not None and config.task_objective.initializes_from_names:
        init_labels_from_names(model, chosen)
    if config.init is not None:
        init_from_run(model, config, Path(source))
    if config.freeze_encoder:
        model.freeze_encoder()
    return model.to(device)


def checked_precision(config: RunConfig, bi_encoder: BiEncoder, device: torch.device) -> str:
    """Return the precision of training; raise UserError for one that encoder or exits exclude."""
    encoder = bi_encoder.encoder
    precision = training_precision(config, device, isinstance(encoder, BiLSTM)).precision
    if precision not in PRECISIONS:
        known = f"auto, {' or '.join(PRECISIONS)}"
        raise SettingsError(f"precision: expected {known} for training, found {precision}")
    if precision == "bf16":
        transformer_config("precision bf16", encoder.config)
    if config.exits:
        transformer_config("exits", encoder.config)
    return precision


def init_from_run(model: EncoderWithHeads, config: RunConfig, weights: Path) -> None:
    """Take over the heads and adapters of the run `init` that fit, and print which these are.

    `weights` is the folder of its best epoch, from which the encoder was read.
    """
    stored = RunFolder(Path(str(config.init))).settings()
    theirs, own = stored.get("own_tasks", {}), config.own_tasks
    names = [  # a task of this name may have other classes there
        name
        for name in model.heads
        if output_signature(own.get(name, {})) == output_signature(theirs.get(name, {}))
    ]
    heads = model.load_matching_heads(weights, names)
    print(f"heads initialised from {config.init}: {', '.join(heads) or 'none'}", flush=True)
    if config.adapter is not None or stored.get("adapter"):
        adapters = model.load_matching_adapters(
            weights, names if same_adapter(config, stored) else ()
        )
        line = f"adapters initialised from {config.init}: {', '.join(adapters) or 'none'}"
        print(line, flush=True)


def start_encoder(config: RunConfig) -> tuple[str, BiEncoder]:
    """Return the folder or name of the encoder that a run starts from, and this encoder."""
    if config.init is None:
        return config.encoder, open_bi_encoder(config.encoder, config)
    folder = RunFolder(Path(config.init))
    long = (folder.settings_if_any() or {}).get("long", config.long)
    if long != config.long:
        line = f"{config.init} was trained with long {long}, this run reads long texts with long"
        print(f"{line} {config.long}", flush=True)
    source = str(folder.weights())
    return source, open_bi_encoder(source, config)


def open_bi_encoder(source: str | Path, config: RunConfig, linear: str | None = None) -> BiEncoder:
    """Return an encoder with the pooling, kernel and reading of texts of a configuration."""
    reading = (config.pooling, linear or config.linear, config.max_tokens, config.long)
    return BiEncoder.from_pretrained(source, *reading)


def same_adapter(config: RunConfig, stored: Mapping[str, Any]) -> bool:
    """Return whether a stored run's adapters compute the same as those of a configuration.

    Their learning rate may differ.
    """
    mine = {key: one for key, one in config.to_json().items() if key.startswith("adapter")}
    return all(stored.get(key) == one for key, one in mine.items() if key != "adapter_lr")


def load_trained(
    folder: Path,
    device: str = "auto",
    linear: str | None = None,
    use: UserMethods = (),
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[RunConfig, dict[str, Task], EncoderWithHeads]:
    """Return configuration, tasks and model (fp32) of a run's best epoch, or of an exported run.

    `linear` replaces the run's kernel, and `reading` its settings `max_tokens` and `long`. Raise
    RunError, SettingsError or EncoderError in one line, and warn if the run has not finished.
    """
    config, best = RunFolder(folder).model_config(use), RunFolder(folder).weights()
    if unknown := [key for key in reading if key not in READING]:
        raise SettingsError(f"reading: expected only {' and '.join(READING)}, found {unknown[0]}")
    if reading:
        config = RunConfig.from_json(config.to_json() | dict(reading), config.user_methods)
    for fault in reading_rules(config):
        raise RunError(fault)
    warn_if_unfinished(folder)
    bi_encoder = open_bi_encoder(best, config, linear)
    with stored_run_errors(folder):
        tasks = build_tasks(config)
        model = EncoderWithHeads(bi_encoder, tasks, config.seed, adapter=config.adapter)
        model.load_heads(best)
    return config, tasks, model.to(choose_device(device))


def init_labels_from_names(model: EncoderWithHeads, chosen: Mapping[str, Task]) -> None:
    """Initialise label embeddings with the encoder's embeddings of the class names."""
    for name, task in chosen.items():
        head = model.heads[name]
        if isinstance(head, InitializesFromNames):
            titles = task.kind.class_names
            if all(to_number(title) is not None for title in titles):
                found = ", ".join(titles) or "none"
                raise SettingsError(
                    f"label_start names: expected names of {name}'s classes, found {found}"
                )
            names = model.bi_encoder.encode(titles, normalize=False)
            head.start(torch.from_numpy(names))
