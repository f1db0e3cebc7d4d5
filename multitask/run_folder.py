"""One folder a run: its name, what is in it, whether it is finished, and making it ready."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.atomic_files import alone, kind_of, remove
from common.json_files import read_json, write_json
from multitask.atomic_dirs import BEST, listed, newest_first, of_run, replaced
from multitask.config import RunConfig, places
from multitask.errors import RunError
from multitask.stored import best_folder, finished_metrics
from multitask.user_methods import source_of
from tasks.described import FILES as DATA_FILES

if TYPE_CHECKING:
    from tasks.data import Split  # which loads torch

CODE = "code"  # copies of the user's files with methods, to be read and never run
FOLDERS = ("predictions", "checkpoint", "tensorboard", CODE)
# The configuration last: it tells that this is a run.
FILES = ("metrics.json", "telemetry.jsonl", "ids.json", "config.json")


def default_folder(config: RunConfig) -> Path:
    """`runs/<what differs>-<hash>`: mode, what is trained and how, encoder, precision, seed."""
    parts: list[str] = [config.mode]
    if config.mode in ("single", "probe"):
        parts += config.tasks
    elif config.pretrains:
        parts += [config.objective.name, *config.tasks]
    else:
        parts += [config.sampling.name, config.combiner.name]
    if not config.pretrains and config.objective is not None:
        parts += [config.objective.name]
    parts += [Path(config.encoder).name, config.precision, f"seed{config.seed}", config.digest()]
    return Path("runs") / "-".join(parts)


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Keep a run's folder to this process; RunError where another one that lives has it.

    The lock ends with its process, however that ends. A folder of somebody else's is refused before
    anything is written into it. A new folder into which nothing was written goes with the lock.
    """
    new = not folder.exists()
    if not new:
        stored_config(folder)
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            mine = stack.enter_context(alone(folder / "run", wait=False))
        except OSError as error:
            raise RunError(f"{folder}: cannot be written: {error.strerror}") from error
        if not mine:
            raise RunError(f"{folder}: expected no run at work in it, found one")
        try:
            yield
        finally:
            if new and [path.name for path in listed(folder)] == ["run.lock"]:
                remove(folder, ignore_errors=True)


def settle_linear(config: RunConfig, folder: Path, overwrite: bool) -> tuple[RunConfig, str]:
    """The configuration with `auto` replaced, and why: a run keeps the kernel it began with.

    Which kernel is faster is measured; on resume the noise of a measurement must not change the
    arithmetic.
    """
    if config.linear == "auto" and not overwrite and (folder / "config.json").exists():
        began = read_json(folder / "config.json", RunError).get("linear", "mkl")
        if began not in ("mkl", "onednn"):
            file = folder / "config.json"
            raise RunError(f"{file}: linear: expected mkl or onednn, found {began!r}")
        return config.changed(linear=began), "the run began with it"
    from minbert.linear import choose_linear  # loads torch

    choice = choose_linear(config.linear)
    return config.changed(linear=choice.kernel), choice.reason


def holds_finished(folder: Path, config: RunConfig, resume: bool, overwrite: bool) -> bool:
    """Whether the folder holds this very run, finished. Nothing is written or deleted here.

    A folder in which nothing was computed yet counts as empty. Raises RunError in one line if the
    folder holds something that is no run, another run, an unfinished one that is neither to be
    resumed nor overwritten, or what this run begins from; CheckpointError if its weights are of
    another configuration than its `config.json`.
    """
    own = [file for one in config.own_tasks.values() for file in map(one.get, DATA_FILES)]
    flat = config.flat()
    sources = [(f"--{key}", flat.get(key)) for key in ("encoder", *places())]
    for flag, source in [*sources, *(("--task", file) for file in own)]:
        parts = [(folder / name).resolve() for name in FOLDERS]
        if source and any(Path(source).resolve().is_relative_to(part) for part in parts):
            raise RunError(
                f"{flag} {source}: expected it outside of {folder}, whose own parts are replaced"
            )
    stored = stored_config(folder)
    if stored is None or overwrite or not begun(folder):
        return False
    difference = config.difference(stored)
    if difference:
        raise RunError(
            f"{folder}: expected this run's configuration, found another: {difference}; "
            "choose another --output, or --overwrite it"
        )
    if finished_metrics(folder) is not None:
        if best_folder(folder).exists():
            of_run(best_folder(folder), config.to_json())
        return True
    if not resume:
        raise RunError(
            f"{folder}: found an unfinished run; add --resume to go on with it, "
            "or --overwrite to start again"
        )
    return False


def make_ready(folder: Path, config: RunConfig, overwrite: bool) -> None:
    """Let the folder be this run's: what is to be overwritten goes, the configuration is written.

    To be called when everything that the run needs was found: a wrong path costs nothing that was
    computed. Raises RunError where it cannot be written.
    """
    try:
        if stored_config(folder) is not None and (overwrite or not begun(folder)):
            remove_run(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "config.json", config.to_json())  # first: it makes the rest a run's
        (folder / "predictions").mkdir(exist_ok=True)
        for file in filter(None, map(source_of, config.outside)):
            (folder / CODE).mkdir(exist_ok=True)
            shutil.copyfile(file, folder / CODE / file.name)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror}") from error


def write_ids(folder: Path, splits: Mapping[str, Mapping[str, Split]]) -> None:
    """`ids.json`: which examples of each task are train, dev and test."""
    found = {
        task: {split: " ".join(one.examples.ids) for split, one in several.items()}
        for task, several in splits.items()
    }
    write_json(folder / "ids.json", found)


def stored_config(folder: Path) -> dict[str, Any] | None:
    """The configuration of the run in a folder; None in one that has no part of a run.

    Raises RunError where something that is no run's has the name of one of its parts: nothing of a
    user's own is ever overwritten.
    """
    for name in FOLDERS + FILES:
        path = folder / name
        if path.exists() and not (path.is_dir() if name in FOLDERS else path.is_file()):
            kind = "a folder" if name in FOLDERS else "a file"
            raise RunError(f"{path}: expected {kind} of a run, or nothing, found neither")
    if (folder / "config.json").exists():
        stored = read_json(folder / "config.json", RunError)
        if not {"mode", "tasks", "seed"} <= stored.keys():
            raise RunError(f"{folder / 'config.json'}: expected a run's, found another program's")
        return stored
    found = [name for name in FOLDERS + FILES if (folder / name).exists()]
    if found:
        raise RunError(
            f"{folder}: expected an empty folder or a run, found {found[0]} without a config.json"
        )
    return None


def begun(folder: Path) -> bool:
    """Whether anything was computed that would be lost: metrics, predictions, a checkpoint."""
    checkpoint = folder / "checkpoint"
    return (
        (folder / "metrics.json").exists()
        or any(kind_of(file) is None for file in folder.glob("predictions/*"))
        or bool(newest_first(checkpoint))
        or any((replaced(path) or path.name) == BEST for path in listed(checkpoint))
    )


def remove_run(folder: Path) -> None:
    """Delete a run's own files and folders, never what a link of such a name leads to."""
    for name in FOLDERS + FILES:
        remove(folder / name)
