"""One training run from configuration to prediction files, metrics and checkpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tasks.sample
from minbert.bi_encoder import BiEncoder
from minbert.device import choose_device, warn_if_slow
from minbert.json_files import write_json
from multitask.checkpoint import published
from multitask.config import RunConfig
from multitask.distributed import Processes, processes
from multitask.environment import environment
from multitask.evaluation import evaluate, mean_losses, overall, score_split
from multitask.model import MultiTaskModel
from multitask.run_folder import RunError, finished_metrics, prepare, settle_linear
from multitask.telemetry import conflict_summary
from multitask.trainer import Trainer
from tasks import build_task
from tasks.base import Task
from tasks.data import Split, load_split
from tasks.predictions import write_predictions, write_scores

SPLITS = ("train", "dev", "test")


def complete(
    config: RunConfig,
    folder: Path,
    resume: bool = False,
    overwrite: bool = False,
    verbose: bool = False,
) -> dict[str, Any]:
    """Bring the run in a folder to its end, in however many processes; what metrics.json holds.

    A finished run is left alone, an unfinished one goes on where `resume` says so.
    """
    with processes(config.device) as group:
        # The first process looks at the folder; the others learn what it found.
        settled: tuple[RunConfig, bool] | None = None
        with group.together():
            if group.first:
                config, reason = settle_linear(config, folder, overwrite)
                if verbose:
                    print(f"linear layers on a CPU: {config.linear} ({reason})")
                settled = config, prepare(folder, config, resume, overwrite)
        config, finished = group.gather(settled)[0]
        if finished:
            print(f"{folder} holds this run, finished; --overwrite would repeat it")
            return finished_metrics(folder) or {}
        print(f"run folder: {folder}", flush=True)
        return run(config, folder, resume, group)


def run(
    config: RunConfig, folder: Path, resume: bool = False, group: Processes | None = None
) -> dict[str, Any]:
    """Train, choose the best epoch on dev, predict dev and test; returns what metrics.json holds.

    Raises DataError, EncoderError or RunError, each with one line for the user.
    """
    begin = time.perf_counter()
    group = group or Processes()
    with group.together():
        trainer = make_trainer(config, folder, group)
        resumed = resume and trainer.resume()
    if len(set(group.gather(trainer.progress.step))) > 1:
        raise RunError(f"{folder}: expected every process to see the same checkpoint")
    if resumed:
        print(f"resumed after epoch {trainer.progress.epoch} of {config.epochs}", flush=True)
    model, chosen, splits = trainer.model, trainer.tasks, trainer.splits
    trainer.fit()
    trainer.load_best()
    metrics, dev_scores = evaluate(
        model, chosen, {name: splits[name]["dev"] for name in chosen}, config.precision, group
    )
    test_scores = {
        name: score_split(model, task, splits[name]["test"], config.precision, group)
        for name, task in chosen.items()
    }
    progress = trainer.progress
    result = {
        "dev": metrics | overall(metrics),
        "best_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "steps": progress.step,
        "combiner_steps": progress.statuses,
        "conflicts": conflict_summary(progress.conflicts),
        "training_seconds": round(progress.seconds, 1),
        "examples_per_second": round(progress.examples / progress.seconds, 1),
        "seconds": round(time.perf_counter() - begin, 1),
        "environment": environment(str(model.bi_encoder.device)) | {"processes": group.count},
        "history": progress.history,
    }
    if config.measured_examples:
        train = {name: splits[name]["train"] for name in chosen}
        result["training_losses"] = mean_losses(
            model, chosen, train, config.precision, config.measured_examples
        )
    if group.first:
        write_split(folder, "dev", chosen, splits, dev_scores)
        write_split(folder, "test", chosen, splits, test_scores)
        write_json(folder / "metrics.json", result)
        trainer.forget()
    group.gather(None)  # the run is whole before anybody leaves
    return result


def make_trainer(config: RunConfig, folder: Path, group: Processes) -> Trainer:
    """The trainer of a configuration, its model built and its data read."""
    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    chosen = build_tasks(config)
    model = build_model(config, chosen, device)
    splits = load_splits(config, chosen, model.bi_encoder)
    return Trainer(model, chosen, splits, config, folder, group)


def build_tasks(config: RunConfig) -> dict[str, Task]:
    """The tasks of a configuration, by name, in its order."""
    return {name: build_task(name, **config.task_options.get(name, {})) for name in config.tasks}


def build_model(
    config: RunConfig, chosen: Mapping[str, Task], device: torch.device
) -> MultiTaskModel:
    """Encoder and heads, from the named encoder or, with `init`, from another run's best epoch."""
    source = config.encoder
    if config.init is not None:
        best = published(Path(config.init) / "checkpoint" / "best")
        if best is None:
            raise RunError(f"{config.init}: expected a run with checkpoint/best, found none")
        source = str(best)
    bi_encoder = BiEncoder.from_pretrained(source, config.pooling, config.linear)
    if bi_encoder.skipped_tensors:
        print(f"left out of the encoder: {', '.join(bi_encoder.skipped_tensors)}", flush=True)
    model = MultiTaskModel(bi_encoder, chosen, config.seed)
    if config.init is not None:
        heads = model.load_matching_heads(Path(source))
        print(f"heads that start from {config.init}: {', '.join(heads) or 'none'}", flush=True)
    if config.freeze_encoder:
        model.freeze_encoder()
    return model.to(device)


def load_splits(
    config: RunConfig, chosen: Mapping[str, Task], bi_encoder: BiEncoder
) -> dict[str, dict[str, Split]]:
    """All splits of all tasks, tokenised; what was read is said aloud."""
    folder = data_folder(config.data)
    splits = {}
    for name, task in chosen.items():
        splits[name] = {
            split: load_split(
                task,
                folder,
                split,
                bi_encoder.tokenizer,
                config.limit if split == "train" else None,
            )
            for split in SPLITS
        }
        counts = ", ".join(f"{split} {len(splits[name][split].examples):,}" for split in SPLITS)
        print(f"{name}: {counts} examples", flush=True)
        for split in SPLITS:
            if blank := splits[name][split].examples.blank_labels:
                where = folder / task.files[split]
                print(f"{name}: {blank} rows with a blank label left out of {where}", flush=True)
    return splits


def data_folder(data: str) -> Path:
    """`sample` is the bundled one."""
    if data == "sample":
        return Path(tasks.sample.__file__).parent
    return Path(data)


def write_split(
    folder: Path,
    split: str,
    chosen: Mapping[str, Task],
    splits: Mapping[str, Mapping[str, Split]],
    scores: Mapping[str, np.ndarray],
) -> None:
    """Prediction file and probabilities of every task for one split."""
    target = folder / "predictions"
    for name, task in chosen.items():
        examples = splits[name][split].examples
        predictions = task.kind.predictions(scores[name])
        file = target / f"{task.output_stem}-{split}-output.csv"
        write_predictions(file, task.output_column, examples.ids, predictions, task.output_format)
        npz = target / f"{name}-{split}-probabilities.npz"
        write_scores(npz, examples.ids, scores[name], examples.targets)
