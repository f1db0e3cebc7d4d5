"""The folder of a run: its lock, whether it is this run with this data, and what is written."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from common.errors import RunError, SettingsError, UserError
from common.files import digest, remove, write_json
from common.later import nn, torch
from minbert.checksums import complete_folder, is_run, read_state
from multitask.config_tasks import plain_tasks
from multitask.runs import CALIBRATION, Run, in_words
from multitask.settings.config import RunConfig
from tasks import build_task, data_folder
from tasks.base import Task
from tasks.predictions import Scores, write_prediction_file, write_scores

Metrics = dict[str, Any]  # the content of metrics.json
TRAINING = "training.pt"  # of a checkpoint `last`: the states of model and optimiser


@contextmanager
def locked(run: Run) -> Iterator[None]:
    """Hold the folder of a run for this process; raise RunError if another process does.

    A folder of other files is refused. What killed processes were writing is deleted. Raise OSError
    if the folder cannot be written.
    """
    folder, stored = run.folder, run.read("config.json")
    names = sorted(one.name for one in folder.glob("[!.]*") if one.name != "run.lock")
    if names and not is_run(stored):
        line = f"the folder has other files, such as {names[0]}; choose another --output"
        raise RunError(f"{folder}: {line}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / "run.lock").acquire(blocking=False)
    except Timeout as busy:
        line = "another process uses this folder; wait for its end, or choose another --output"
        raise RunError(f"{folder}: {line}") from busy
    with lock:
        for half in (*folder.glob(".*.new"), *(folder / "predictions").glob(".*.new")):
            remove(half)
        for kind in ("best", "last"):  # as `save` left them
            if (folder / kind).exists():
                remove(folder / f".{kind}.old")
            elif (folder / f".{kind}.old").exists():
                (folder / f".{kind}.old").rename(folder / kind)
        try:
            yield
        finally:
            if [one.name for one in folder.glob("*")] == ["run.lock"]:
                remove(folder)


# Is it this run?


def has_results(run: Run) -> bool:
    """Return whether the folder holds metrics or a checkpoint."""
    return bool(run.read("metrics.json") or run.checkpoint("best") or run.checkpoint("last"))


def holds(run: Run, config: RunConfig, data: Mapping[str, str], resume: bool) -> bool:
    """Return whether this run is finished in its folder, with equal configuration and data.

    Raise RunError if another run is there, and for an unfinished one without `resume`.
    """
    if not has_results(run):
        return False
    check_same(run, config.to_json(), data)
    if not run.metrics and not resume:
        advice = "add --resume to continue it, or --overwrite to start again"
        raise RunError(f"{run.folder}: the run is unfinished; {advice}")
    return bool(run.metrics)


def check_same(run: Run, asked: Mapping[str, Any], data: Mapping[str, str]) -> None:
    """Raise RunError if the folder has a run with other settings than `asked`, or other data.

    A finished run does not need its files; those that are gone are not in `data`.
    """
    stored, asked, before = in_words(run.settings), in_words(asked), run.read("data.json")
    keys = [key for key in {**stored, **asked} if stored.get(key) != asked.get(key)]
    found = f"{keys[0]}: {stored.get(keys[0])!r}" if keys else ""
    found = found or next((key for key in data if before.get(key) != data[key]), "")
    if found:
        advice = f"choose another --output, continue it by --config {run.folder / 'config.json'}"
        if keys[:1] == ["epochs"] and run.metrics:
            advice = f"it is finished; start from it by --init {run.folder} and another --output"
        line = f"the folder holds a run with another {found}; {advice}, or add --overwrite"
        raise RunError(f"{run.folder}: {line}")


def file_digests(config: RunConfig) -> dict[str, str]:
    """Return the SHA-256 of each file that a run reads and that is there.

    The keys are `TASK SPLIT`, and `text` for a file of texts.
    """
    folder = data_folder(config.data)
    files = {
        f"{name} {split}": task.source.where(folder, split)
        for name, task in plain_tasks(config).items()
        for split in task.source.splits
    }
    if config.pretrains and not getattr(config.objective, "of_classes", False):  # selects the epoch
        files["sts dev"] = build_task("sts").source.where(folder, "dev")
    if config.text_file is not None:
        files["text"] = config.text_file
    return {key: digest(Path(file)) for key, file in files.items() if Path(file).is_file()}


def check_inputs_stay(folder: Path, config: RunConfig) -> None:
    """Raise SettingsError for an input that would be replaced by the run that reads it."""
    own = [file for one in config.own_tasks.values() for file in one.files.values()]
    inputs = config.encoder, config.init, config.text_file, *config.teacher, *own
    for name in filter(None, inputs):
        if Path(name).exists() and Path(name).resolve().is_relative_to(folder.resolve()):
            raise SettingsError(f"output: the run reads {name} in this folder; choose another")


def begin(run: Run, config: Mapping[str, Any], data: Mapping[str, str]) -> None:
    """Write the configuration and the checksums of the data, over a run that is replaced.

    Only a run's own files and folders go, and not the targets of links. The configuration goes
    last, because it marks the folder as a run.
    """
    parts = ("best", "last", "metrics.json", "predictions", "tensorboard", "telemetry.jsonl")
    for name in (*parts, CALIBRATION, "data.json", "config.json"):
        remove(run.folder / name)
    write_json(run.folder / "config.json", config)
    write_json(run.folder / "data.json", data)
    (run.folder / "predictions").mkdir()


def save(run: Run, kind: str, write: Callable[[Path], None], state: Mapping[str, Any]) -> None:
    """Let `write` fill a checkpoint `best` or `last`, which then replaces the one that is there.

    After an error, for example because the disk is full, the old one stays. If the process is
    killed, it may have the name `.KIND.old`.
    """
    place, new, old = (run.folder / name for name in (kind, f".{kind}.new", f".{kind}.old"))
    new.mkdir(parents=True)
    try:
        write(new)
        complete_folder(new, state)
    except BaseException:
        remove(new)
        raise
    if place.exists():
        place.rename(old)
    new.rename(place)
    remove(old)


def save_last(
    run: Run, model: "nn.Module", optimizer: "torch.optim.Optimizer", state: Mapping[str, Any]
) -> None:
    """Save the states of model and optimiser, and `state`, which is JSON."""
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    def write(folder: Path) -> None:
        with (folder / TRAINING).open("wb") as file:
            try:
                torch.save(states, file)
            except RuntimeError as error:  # after the OSError of a full disk
                raise error.__context__ or error from None

    save(run, "last", write, state)


def load_last(
    run: Run, model: "nn.Module", optimizer: "torch.optim.Optimizer"
) -> dict[str, Any] | None:
    """Load what `save_last` wrote into model and optimiser; return `state`.

    Return None without a checkpoint; raise RunError for a damaged one.
    """
    if (folder := run.checkpoint("last")) is None:
        return None
    state = read_state(folder, RunError)
    states = torch.load(folder / TRAINING, map_location="cpu", weights_only=True)
    model.load_state_dict(states["model"])
    optimizer.load_state_dict(states["optimizer"])
    return state


def write_predictions(run: Run, task: Task, split: str, table: Scores) -> None:
    """Write the prediction file of a task on a split, if it has one, and the scores."""
    if task.output is not None:
        file = run.folder / "predictions" / task.output.name(split)
        predictions = table.predicted(task.kind.predictions)
        write_prediction_file(file, task.output, table.ids, predictions)
    write_scores(run.scores_file(task.name, split), table)


def write_merged(
    folder: Path,
    config: Mapping[str, Any],
    members: Iterable[Path],
    overwrite: bool,
    merge: Callable[[], tuple[Metrics, Mapping[str, Mapping[str, Scores]], Mapping[str, str]]],
) -> Metrics:
    """Write a run that is merged from others, or fitted to one of them; return its metrics.

    `merge` returns them, the scores by task and split, and the checksums of the files with the
    scored examples. Raise UserError before it is called if the folder is a member's, and RunError
    if it holds another run, or another process uses it.
    """
    if folder.resolve() in {one.resolve() for one in members}:
        raise UserError(f"{folder}: this is the folder of a member; choose another --output")
    run = Run(folder)
    with locked(run):
        if run.read("config.json") and not overwrite:
            check_same(run, config, {})
        metrics, tables, data = merge()
        begin(run, config, data)
        for task, splits in tables.items():
            for split, table in splits.items():
                write_predictions(run, run.described(task).build(), split, table)
        write_json(run.folder / "metrics.json", metrics)
    return metrics
