"""A training run, from configuration to prediction files, metrics and checkpoint."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import RunError, SettingsError, all_names, counted
from common.files import remove, write_json
from common.settings import convert
from minbert.device import environment
from multitask.distributed import connected_processes
from multitask.loop.evaluation import score_split
from multitask.loop.telemetry import read_steps, summary
from multitask.loop.trainer import Trainer
from multitask.run_folder import (
    begin,
    check_inputs_stay,
    file_digests,
    has_results,
    holds,
    locked,
    write_predictions,
)
from multitask.runs import CALIBRATION, Run, default_folder
from multitask.settings.config import RunConfig
from multitask.settings.run_settings import TRAINING_MODES
from tasks.calibration import calibrate
from tasks.metrics import overall
from tasks.predictions import Scores

WIDTH = 384  # of the encoder for which the default rates were chosen


def train(
    config: RunConfig,
    folder: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Sequence[Callable[[Trainer], object]] = (),
    checkpoint_every: int | None = None,
    tensorboard: bool = True,
) -> Run:
    """Train into a folder, in one or several processes, or open the finished run in it.

    Args:
        config: the configuration, also of pre-training.
        folder: folder of the run; None for one under `runs/`, named after the configuration.
        resume: continue an unfinished run.
        overwrite: start again in a folder that holds a run.
        callbacks: functions that the first of several processes calls with the trainer after each
            evaluation; `trainer.progress.history` has the dev metrics so far, and `trainer.model`
            is the model in training.
        checkpoint_every: number of steps between checkpoints; others are written every ten minutes
            and after each evaluation.
        tensorboard: store curves.

    Raises:
        common.errors.UserError: one line that says what was expected; its subclasses name the
            cause: SettingsError, RunError, DataError, EncoderError.
    """
    if resume and overwrite:
        raise SettingsError("resume and overwrite: give only one of them")
    if not config.tasks and config.text_file is None:
        raise SettingsError("tasks: name one or more, such as sst")
    if config.mode not in TRAINING_MODES:
        raise SettingsError(f"mode: choose {all_names(TRAINING_MODES, 'or')}, not {config.mode}")
    place = default_folder(config) if folder is None else Path(convert("folder", str, folder))
    run, started = Run(place), time.perf_counter()
    processes = connected_processes(config.device)
    with ExitStack() as stack:
        # The first process inspects the folder and sends the result to the others.
        shared: tuple[RunConfig, dict[str, str], bool] | None = None
        with processes.synchronized_errors():
            if processes.first:
                check_inputs_stay(run.folder, config)
                stack.enter_context(locked(run))
                began = None if overwrite else run.read("config.json").get("precision")
                if began and config.precision == "auto":
                    config = replace(config, precision=began)
                data = file_digests(config)
                finished = not overwrite and holds(run, config, data, resume)
                shared = config, data, finished
        config, data, finished = processes.gather(shared)[0]
        if finished:
            print(f"{run.folder} holds this run, already finished; --overwrite repeats it")
            if processes.first:
                remove(run.folder / "last")  # in case it was killed before that
            return Run(place.absolute())
        print(f"run folder: {run.folder}", flush=True)
        with processes.synchronized_errors():
            trainer = Trainer(
                config, run.folder, processes, callbacks, checkpoint_every, tensorboard
            )
        # Other processes might choose another precision.
        trainer.model.precision = processes.gather(trainer.model.precision)[0]
        config = replace(config, precision=trainer.model.precision)
        with processes.synchronized_errors():  # only after all processes found their inputs
            if processes.first and (overwrite or not has_results(run)):
                begin(run, config.to_json(), data)  # a run that goes on keeps all
        with processes.synchronized_errors():
            resumed = resume and trainer.resume()
        if len(set(processes.gather(trainer.progress.step))) > 1:
            raise RunError(f"{run.folder}: the processes have different checkpoints")
        print(f"data read and encoder loaded in {time.perf_counter() - started:.1f} s", flush=True)
        encoder, progress = trainer.model.bi_encoder, trainer.progress
        rate, usual = config.optimizer.lr, type(config.optimizer)().lr
        if encoder.width > WIDTH and rate == usual and not config.freeze_encoder:
            line = f"lr {rate:g} was chosen for an encoder of width {WIDTH}; for BERT base, try"
            print(f"{line} --lr 2e-5 --head-lr 2e-5 (--preset bees)", flush=True)
        what = f"{'pre-trains' if config.pretrains else 'trains'} {Path(config.encoder).name} on "
        where = f"{all_names([*trainer.tasks])}, on {encoder.device}: "
        steps = f"{counted(config.epochs, 'epoch')}, {counted(trainer.total_steps, 'step')} in all"
        print(what + where + steps, flush=True)
        if resumed:
            where = f"step {progress.step:,}, epoch {progress.epoch} of {config.epochs}"
            print(f"resumed after {where}", flush=True)
        trainer.fit()
        write_results(trainer, started)
    return Run(place.absolute())


def write_results(trainer: Trainer, started: float) -> None:
    """Predict dev and test with the best weights; write predictions and metrics.json.

    `started` is the time of the start.
    """
    config, processes, run = trainer.config, trainer.processes, Run(trainer.folder)
    model, tasks, splits = trainer.model, trainer.tasks, trainer.splits
    model.load(run.weights())
    dev, dev_scores = trainer.best_dev or trainer.evaluate()  # missing after a resume
    tested = [name for name, several in splits.items() if "test" in several]
    test_scores = {
        name: score_split(model, tasks[name], splits[name]["test"], processes) for name in tested
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
    dev_splits = {name: splits[name]["dev"] for name in tasks}
    temperatures = calibrate(tasks, dev_splits, dev_scores) if config.calibrate else {}
    if processes.first:
        if temperatures:
            result["calibration"] = temperatures
            write_json(run.folder / CALIBRATION, temperatures)
        result |= summary(read_steps(run.folder / "telemetry.jsonl"))
        write_json(run.folder / "metrics.json", result)
        remove(run.folder / "last")
    processes.gather(None)  # all wait for the complete run
