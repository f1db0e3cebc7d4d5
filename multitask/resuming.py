"""From a run in progress to its checkpoint, and back to the very same point."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from minbert.linear import choose_linear
from multitask.atomic_dirs import CheckpointError, published
from multitask.progress import Progress
from tasks.data import Split

if TYPE_CHECKING:
    from multitask.trainer import Trainer


def state_of(trainer: Trainer) -> dict[str, Any]:
    """What a resumed run needs beside weights and optimiser, as JSON."""
    return {
        "progress": asdict(trainer.progress),
        "streams": {stream.task: stream.position for stream in trainer.streams},
        "combiner": trainer.combiner.state_dict(),
        "dropout": trainer.model.dropout_stream.state_dict(),
        "linear": trainer.config.linear,
        "processes": trainer.processes.count,
        "data": trainer.data,
        "began": trainer.began,
    }


def resume(trainer: Trainer) -> bool:
    """Go back to the newest whole checkpoint; False where there is none.

    Raises CheckpointError for one of other data, other processes or another form.
    """
    found = trainer.checkpoints.load(trainer.model, trainer.optimizer)
    if found is None:
        if trainer.telemetry.written:  # by a run that ended before its first checkpoint
            print("no checkpoint to go on from: it begins again", flush=True)
            trainer.telemetry.forget_after(0)
        return False
    state, others = found
    try:
        restore(trainer, state)
        for name, regularizer in trainer.regularizers.items():
            regularizer.load_state_dict(others.get(name, {}))
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            f"{trainer.checkpoints.folder}: expected the state of this run, "
            f"found {type(error).__name__}: {error}; --overwrite starts again"
        ) from error
    check_best(trainer)
    trainer.kept = trainer.moment
    if trainer.processes.first:
        trainer.telemetry.forget_after(trainer.progress.step)
    return True


def check_best(trainer: Trainer) -> None:
    """CheckpointError where the best epoch's weights, which the run ends with, are not there.

    Neither are those of another run.
    """
    epoch = trainer.progress.best_epoch
    if not epoch:
        return
    try:
        best = published(trainer.best_folder)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; --overwrite starts again") from error
    if best is None:
        raise CheckpointError(
            f"{trainer.best_folder}: expected the weights of epoch {epoch}, found none; "
            "--overwrite starts again"
        )
    trainer.checkpoints.check(best)


def restore(trainer: Trainer, state: Mapping[str, Any]) -> None:
    """Go back to what `state_of` told."""
    if state["processes"] != trainer.processes.count:
        raise CheckpointError(
            f"--resume: expected {state['processes']} processes, as the run began with, "
            f"found {trainer.processes.count}"
        )
    if state["data"] != trainer.data:
        raise CheckpointError(
            "--resume: expected the examples that the run began with, found others; "
            "--overwrite starts again"
        )
    trainer.progress = Progress.from_json(state["progress"])
    trainer.began = str(state["began"])
    for stream in trainer.streams:
        number, taken = state["streams"][stream.task]
        stream.position = (number, taken)
    trainer.combiner.load_state_dict(state["combiner"])
    trainer.model.dropout_stream.load_state_dict(state["dropout"])
    trainer.model.bi_encoder.encoder.use_linear(choose_linear(state["linear"]).kernel)


def fingerprint(splits: Mapping[str, Mapping[str, Split]]) -> str:
    """SHA-256 over tokens, targets and ids of every split: what a run learns from and is judged by.

    The same run of other data would not be the same run.
    """
    whole = hashlib.sha256()
    for name, several in splits.items():
        for split, found in several.items():
            whole.update(f"{name} {split} {len(found.examples)}\n".encode())
            whole.update("\n".join(found.examples.ids).encode())
            for tokens in found.tokens:
                whole.update(tokens.offsets.data)
                whole.update(tokens.ids.data)
            if found.examples.targets is not None:
                whole.update(np.ascontiguousarray(found.examples.targets).data)
    return whole.hexdigest()
