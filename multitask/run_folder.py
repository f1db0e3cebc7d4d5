"""The folder of a run: what it holds, whether it is this run, and its lock.

`best-N/` and `last-N/` are its checkpoints. Each is written under a new number, and the newest
complete one counts. The best one of a finished run is `best/`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from common.errors import Notice, OtherRunError, RunError, UserError
from common.files import (
    EXPORTED,
    STATE,
    digest,
    digest_of_json,
    file_lock,
    is_run,
    read_json,
    read_json_if_any,
    read_state,
    remove,
    write_json,
)
from multitask.settings.config import RunConfig
from tasks.metrics import OVERALL_KEYS, metric_error
from tasks.predictions import scores_name

CHECKPOINT = re.compile(r"(best|last)(?:-([0-9]+))?")
CALIBRATION = "calibration.json"  # in an exported folder, too
SOFT_TARGETS = "soft-targets"  # scores of the run for the training examples of its students
# The configuration is removed last, because it marks the folder as a run.
PARTS = (
    *("metrics.json", "predictions", "tensorboard", "code", SOFT_TARGETS, "telemetry.jsonl"),
    *(CALIBRATION, "data.json", "config.json"),
)
Figures = dict[str, dict[str, float] | float]  # per task, and overall


class Epoch(TypedDict):
    """Dev metrics after an epoch."""

    epoch: int
    dev: dict[str, Any]


class Metrics(TypedDict, total=False):
    """The content of `metrics.json` of a run or a merge of runs; other keys are not checked."""

    dev: Figures
    test: dict[str, dict[str, float]]
    by_class: dict[str, dict[str, dict[str, dict[str, float]]]]
    history: list[Epoch]
    members: dict[str, dict[str, Any]]
    cut_texts: dict[str, tuple[int, int]]
    calibration: dict[str, dict[str, float]]


class TrainedMetrics(Metrics):
    """What `metrics.json` of a trained run has in any case."""

    best_epoch: int
    epochs: int
    steps: int
    combiner_steps: dict[str, int]
    training_seconds: float
    examples_per_second: float
    seconds: float


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, or an exported one. The constructor reads and writes nothing."""

    path: Path

    @property
    def config_file(self) -> Path:
        """The file of the run's settings, which marks the folder as a run."""
        return self.path / "config.json"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.json"

    @property
    def steps(self) -> Path:
        """The file with one line per step."""
        return self.path / "telemetry.jsonl"

    @property
    def predictions(self) -> Path:
        return self.path / "predictions"

    @property
    def exported(self) -> bool:
        return (self.path / EXPORTED).exists()

    def scores(self, task: str, split: str) -> Path:
        """Return the file with a task's probabilities or similarities on a split."""
        return self.predictions / scores_name(task, split)

    def settings_if_any(self) -> dict[str, Any] | None:
        """Return the content of `config.json`; None without one, RunError if it is invalid."""
        return read_json(self.config_file, RunError) if self.config_file.exists() else None

    def settings(self) -> dict[str, Any]:
        """Return the settings of a run or an export; raise RunError without any."""
        file = self.path / EXPORTED if self.exported else self.config_file
        if not file.exists():
            raise RunError(f"{self.path}: expected a run with a config.json, found none")
        content = read_json(file, RunError)
        if "lr" in content:  # settings of methods were beside the others
            raise RunError(f"{file}: a run of an earlier version; train it again")
        return content

    def config(self) -> RunConfig:
        """Return the configuration of a run or an export."""
        content, file = self.settings(), self.path / (EXPORTED if self.exported else "config.json")
        try:
            return RunConfig(**content)
        except UserError as error:
            raise RunError(f"{file}: {error}") from error

    def encoder(self) -> str:
        """Return the name of the run's initial encoder."""
        encoder = self.settings().get("encoder")
        if not isinstance(encoder, str):
            raise RunError(f"{self.path}: expected a run with an encoder, found {encoder!r:.60}")
        return encoder

    def read_metrics(self, kind: Any = Metrics) -> dict[str, Any] | None:
        """Return the metrics of a run or of a merge of runs; None without a `metrics.json`.

        Raise RunError for other content or an impossible figure.
        """
        if not self.metrics_file.exists():
            return None
        found = read_json(self.metrics_file, RunError)
        try:
            checked = msgspec.convert(found, kind)
        except (msgspec.ValidationError, UnicodeError) as error:
            raise RunError(f"{self.metrics_file}: {error}; train again with --overwrite") from error
        for task, figures in found.get("dev", {}).items():
            if isinstance(figures, float) != (task in OVERALL_KEYS):
                raise RunError(f"{self.metrics_file}: dev: {task}: found {figures!r}")
        if wrong := metric_error({k: v for k, v in checked.items() if k in METRICS_OF_TASKS}):
            raise RunError(f"{self.metrics_file}: {wrong}; train again with --overwrite")
        return found

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics of a trained run; None if it is not finished."""
        return self.read_metrics(TrainedMetrics)

    def data(self) -> dict[str, Any]:
        """Return the checksums of what the run read; empty if none are stored."""
        return read_json_if_any(self.path / "data.json", RunError)

    # Checkpoints

    def checkpoints(self, kind: str) -> list[Path]:
        """Return the checkpoints `best` or `last`, also incomplete ones, the oldest first."""
        found = [(CHECKPOINT.fullmatch(one.name), one) for one in sorted(self.path.glob("*"))]
        several = [(int(m[2] or 0), one) for m, one in found if m is not None and m[1] == kind]
        return [one for _, one in sorted(several)]

    def newest(self, kind: str) -> Path | None:
        """Return the newest complete checkpoint `best` or `last`; None without any."""
        complete = [one for one in self.checkpoints(kind) if (one / STATE).exists()]
        return complete[-1] if complete else None

    def state(self, checkpoint: Path, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the state of a checkpoint; raise RunError if it is damaged or of another run.

        `config` is by default that in the folder.
        """
        state = read_state(checkpoint, RunError)
        if key := different_key(self.settings() if config is None else config, state["config"]):
            raise RunError(
                f"{checkpoint}: expected a checkpoint of {self.config_file}, found another {key}; "
                "restore one of them, or train again with --overwrite"
            )
        return state

    def weights(self, config: Mapping[str, Any] | None = None) -> Path:
        """Return the folder with the weights of the best epoch, or of an export.

        Raise RunError if there are none, or if they are damaged or of another run.
        """
        if self.exported:
            return self.path
        best = self.newest("best")
        if best is None:
            self.settings()  # raises RunError if there is no run at all
            raise RunError(f"{self.path}: expected a run with the weights in best, found none")
        self.state(best, config)
        return best

    def weights_checksum(self) -> str:
        """Return a checksum of the tensors in `weights`."""
        return digest_of_json([digest(one) for one in sorted(self.weights().glob("*.safetensors"))])

    def finish(self) -> None:
        """Name the best weights `best`, and delete the checkpoints from which a run resumes."""
        *others, best = [None, *self.checkpoints("best")]
        if best is not None and best.name != "best" and (best / STATE).exists():
            remove(self.path / "best")
            best.rename(self.path / "best")
        for one in (*filter(None, others), *self.checkpoints("last")):
            remove(one)

    # Before and after training

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process; raise RunError if another process does.

        A folder of other files is refused. What killed processes were writing is deleted.
        """
        self.run_or_nothing()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            line = f"cannot be written: {error.strerror}; choose another --output"
            raise RunError(f"{self.path}: {line}") from error
        with file_lock(self.path / "run", wait=False) as mine:
            if not mine:
                process = (self.path / "run.lock").read_text().strip()
                line = f"process {process} is using it; wait for its end, or choose another"
                raise RunError(f"{self.path}: {line} --output")
            for half in (*self.path.glob(".*.new"), *self.predictions.glob(".*.new")):
                remove(half)
            try:
                yield
            finally:
                if [one.name for one in self.path.glob("*")] == ["run.lock"]:
                    remove(self.path)

    def run_or_nothing(self) -> dict[str, Any] | None:
        """Return the settings of the run; None if the folder is empty or missing.

        Raise RunError for other files, so that no file of the user is ever overwritten.
        """
        stored = self.settings_if_any()
        if stored is not None and not is_run(stored):
            raise RunError(f"{self.config_file}: expected a run's, found another program's")
        names = [] if stored is not None else sorted(one.name for one in self.path.glob("*"))
        if found := next((n for n in names if n != "run.lock" and not n.startswith(".")), None):
            raise RunError(
                f"{self.path}: expected a new or empty folder, or a run, found {found} without "
                "a config.json; choose another --output"
            )
        return stored

    def has_results(self) -> bool:
        """Return whether the folder holds metrics, predictions or a checkpoint."""
        found = self.metrics_file.exists() or any(self.predictions.glob("*"))
        return found or any(map(self.newest, ("best", "last")))

    def holds(
        self, config: RunConfig, data: Mapping[str, str], resume: bool, overwrite: bool
    ) -> bool:
        """Return whether this run is finished here, with equal configuration and data.

        Raise OtherRunError if another run is here, and RunError for an unfinished one without
        `resume`. With `overwrite`, and before anything is computed, the folder counts as empty.
        """
        if overwrite or self.run_or_nothing() is None or not self.has_results():
            return False
        stored = self.settings()
        if key := different_key(stored, config.to_json()):
            line = f"here is a run with another {key}: {stored.get(key)!r}"
            advice = f"choose another --output, go on with --config {self.config_file}"
            raise OtherRunError(f"{self.path}: {line}; {advice}, or add --overwrite")
        before = read_json(self.path / "data.json", RunError)
        if key := next((k for k in data if before.get(k) != data[k]), None):
            line = f"the run began with another {key} than there is now"
            advice = "restore it, choose another --output, or add --overwrite"
            raise OtherRunError(f"{self.path}: {line}; {advice}")
        finished = self.metrics() is not None
        if not finished and not resume:
            advice = "add --resume to go on with it, or --overwrite to start again"
            raise RunError(f"{self.path}: found an unfinished run; {advice}")
        return finished

    def begin(self, config: Mapping[str, Any], data: Mapping[str, str], overwrite: bool) -> None:
        """Write the configuration and the checksums of the data, over a run that is replaced.

        A run that goes on keeps what it has.
        """
        if overwrite or not self.has_results():
            self.remove()
            write_json(self.config_file, config)
            write_json(self.path / "data.json", data)
        self.predictions.mkdir(exist_ok=True)

    def remove(self) -> None:
        """Delete a run's own files and folders, but not the targets of links."""
        remove(self.metrics_file)
        for one in (*self.checkpoints("best"), *self.checkpoints("last")):
            remove(one)
        for name in PARTS:
            remove(self.path / name)

    def warn_if_unfinished(self) -> None:
        """Warn the caller's caller if the run has not finished; an export is never unfinished."""
        if not self.exported and not self.metrics_file.exists():
            line = "this run has not finished: its best epoch so far is used; --resume continues it"
            warnings.warn(f"{self.path}: {line}", Notice, stacklevel=3)


METRICS_OF_TASKS = ("dev", "test", "by_class", "history", "members", "calibration")


def different_key(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Return the first key in which two configurations as JSON differ; None if they are equal."""
    return next((key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)), None)


def run_of_predictions(path: Path) -> RunFolder:
    """Return the folder of the run that a prediction file, or a folder of them, is of."""
    folder = (path.parent if path.is_file() else path).resolve()
    return RunFolder(folder.parent if folder.name == "predictions" else folder)


SETTINGS_ERRORS = (
    *(RuntimeError, OSError, KeyError, TypeError, ValueError, AttributeError, AssertionError),
    ZeroDivisionError,
)


@contextmanager
def stored_run_errors(folder: Path) -> Iterator[None]:
    """Turn errors that the settings of a stored run of unknown origin cause into a RunError."""
    try:
        yield
    except UserError:
        raise
    except SETTINGS_ERRORS as error:
        found = f"{type(error).__name__}: {error}"
        raise RunError(f"{folder}: expected a run and its heads, found {found}") from error


def default_folder(config: RunConfig) -> Path:
    """Return `runs/<mode, method, encoder, precision, seed>-<hash>` for a configuration."""
    names = "-".join(config.tasks) if len(config.tasks) < 6 else f"{len(config.tasks)}-tasks"
    parts: list[str] = [config.mode]
    if config.mode in ("single", "probe"):
        parts += [names]
    elif config.pretrains and config.objective is not None:
        parts += [config.objective.name] + [names] * bool(names)
    else:
        parts += [config.sampling.name, config.combiner.name]
    if not config.pretrains and config.objective is not None:
        parts += [config.objective.name]
    if config.branch is not None:
        parts += [config.branch]
    parts += [Path(config.encoder).name, config.precision, f"seed{config.seed}", config.digest()]
    return Path("runs") / "-".join(parts)
