"""A training run, from configuration to prediction files, metrics and checkpoint."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from common.environment import environment
from common.errors import RunError, SettingsError
from common.files import write_json
from common.text import all_names, counted
from multitask.assembly import assemble, soft_targets, with_precision
from multitask.distributed import Processes, connected_processes
from multitask.loop.evaluation import evaluate, score_split
from multitask.loop.telemetry import read_steps, summary
from multitask.loop.trainer import Trainer
from multitask.run_folder import (
    begin,
    check_inputs_stay,
    file_digests,
    finish,
    has_results,
    holds,
    locked,
    write_predictions,
)
from multitask.runs import CALIBRATION, Run, RunControl
from multitask.settings.config import RunConfig
from multitask.settings.run_settings import TRAINING_MODES
from tasks.calibration import calibrate
from tasks.metrics import overall
from tasks.predictions import Scores

WIDTH = 384  # of the encoder for which the default rates were chosen


def complete(config: RunConfig, folder: Path, control: RunControl = RunControl()) -> dict[str, Any]:
    """Complete the run in a folder, in one or several processes; return what metrics.json holds.

    A finished run is not repeated, and an unfinished one is continued if `control.resume` is set.
    Raise a UserError of one line: RunError if another process uses the folder, and SettingsError
    for a configuration without a mode or without anything to train on.
    """
    if not config.tasks and config.text_file is None:
        raise SettingsError("tasks: name one or more, such as sst")
    if config.mode not in TRAINING_MODES:
        raise SettingsError(f"mode: {', '.join(TRAINING_MODES)} are trained, not {config.mode}")
    started, run, processes = time.perf_counter(), Run(folder), connected_processes(config.device)
    with ExitStack() as stack:
        # The first process inspects the folder and sends the result to the others.
        shared: tuple[RunConfig, str | None, dict[str, str], bool] | None = None
        with processes.synchronized_errors():
            if processes.first:
                check_inputs_stay(folder, config)
                stack.enter_context(locked(run))
                began = None if control.overwrite else run.read("config.json").get("precision")
                config, precision = with_precision(config, began)
                data = file_digests(config)
                finished = not control.overwrite and holds(run, config, data, control.resume)
                shared = config, precision, data, finished
        config, precision, data, finished = processes.gather(shared)[0]
        if finished:
            print(f"{folder} holds this run, finished; --overwrite would repeat it")
            if processes.first:
                finish(run)  # in case it was killed before that
            return run.metrics
        for line in filter(None, (f"run folder: {folder}", precision)):
            print(line, flush=True)
        with processes.synchronized_errors():
            trainer = make_trainer(config, folder, processes, control)
        with processes.synchronized_errors():  # only after all processes found their inputs
            if processes.first and (control.overwrite or not has_results(run)):
                begin(run, config.to_json(), data)  # a run that goes on keeps all
        with processes.synchronized_errors():
            resumed = control.resume and trainer.resume()
        if len(set(processes.gather(trainer.progress.step))) > 1:
            raise RunError(f"{folder}: expected the same checkpoint in every process")
        print(f"data read and encoder loaded in {time.perf_counter() - started:.1f} s", flush=True)
        what = f"{'pre-trains' if config.pretrains else 'trains'} {Path(config.encoder).name} on "
        where = f"{all_names([*trainer.tasks])}, on {trainer.model.bi_encoder.device}: "
        steps = f"{counted(config.epochs, 'epoch')}, {counted(trainer.total_steps, 'step')} in all"
        print(what + where + steps, flush=True)
        if resumed:
            step, epoch = trainer.progress.step, trainer.progress.epoch
            print(f"resumed after step {step:,}, epoch {epoch} of {config.epochs}", flush=True)
        trainer.fit()
        return write_results(trainer, started)


def make_trainer(
    config: RunConfig,
    folder: Path,
    processes: Processes = Processes(),
    control: RunControl = RunControl(),
) -> Trainer:
    """Return the trainer of a configuration, with its model and data."""
    tasks, model, splits = assemble(config)
    for name, soft in (soft_targets(config) if config.teacher else {}).items():
        splits[name]["train"] = replace(splits[name]["train"], soft=soft)
    rate, usual = config.optimizer.lr, type(config.optimizer)().lr
    if model.bi_encoder.width > WIDTH and rate == usual and not config.freeze_encoder:
        line = f"lr {rate:g} suits an encoder of width {WIDTH}; BEES fine-tunes BERT base"
        print(f"{line} at --lr 2e-5 --head-lr 2e-5 (--preset bees)", flush=True)
    return Trainer(model, tasks, splits, config, folder, processes, control)


def write_results(trainer: Trainer, started: float) -> dict[str, Any]:
    """Predict dev and test with the best weights; write predictions and metrics.json, return these.

    `started` is the time of the start.
    """
    config, processes, run = trainer.config, trainer.processes, Run(trainer.folder)
    model, tasks, splits = trainer.model, trainer.tasks, trainer.splits
    model.load(run.weights())
    dev_splits = {name: splits[name]["dev"] for name in tasks}
    dev, dev_scores = trainer.best_dev or evaluate(  # missing after a resume
        model, tasks, dev_splits, processes
    )
    test_splits = {name: several["test"] for name, several in splits.items() if "test" in several}
    test_scores = {
        name: score_split(model, tasks[name], split, processes)
        for name, split in test_splits.items()
    }
    progress = trainer.progress
    result: dict[str, Any] = {
        "dev": dev | overall(dev),
        "best_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "steps": progress.step,
        "training_seconds": round(progress.seconds, 3),
        "examples_per_second": round(progress.examples / progress.seconds, 1),
        "seconds": round(time.perf_counter() - started, 3),
        "environment": environment(str(model.bi_encoder.device))
        | {"date": trainer.began, "processes": processes.count},
        # Per task: training texts truncated to the encoder's limit, and all training texts.
        "cut_texts": {name: several["train"].cut for name, several in splits.items()},
        "history": progress.history,
    }
    if progress.before:
        result["before"] = progress.before
    for split, scores in (("dev", dev_scores), ("test", test_scores)):
        for name, values in scores.items():
            examples = splits[name][split].examples
            if examples.targets is not None and split == "test":
                measured = tasks[name].kind.measure(values, examples.targets)
                result.setdefault("test", {})[name] = measured
            if processes.first and tasks[name].output is not None:
                table = Scores(np.array(examples.ids), values, examples.targets)
                write_predictions(run, tasks[name], split, table)
    temperatures = calibrate(tasks, dev_splits, dev_scores) if config.calibrate else {}
    if temperatures:
        result["calibration"] = temperatures
    if processes.first:
        result |= summary(read_steps(run.folder / "telemetry.jsonl"))
        if temperatures:
            write_json(run.folder / CALIBRATION, temperatures)
        write_json(run.folder / "metrics.json", result)
        finish(run)
    found: dict[str, Any] = processes.gather(result)[0]  # all wait for the complete run
    return found
