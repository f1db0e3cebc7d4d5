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
from typing import Any

from common.errors import Notice, RunError, UserError
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
from tasks.predictions import scores_name

CHECKPOINT = re.compile(r"(?:best|last)(?:-[0-9]{4,})?")
CALIBRATION = "calibration.json"  # in an exported folder, too
# The configuration is removed last, because it marks the folder as a run.
PARTS = (
    *("predictions", "tensorboard", "code", "telemetry.jsonl", CALIBRATION),
    *("data.json", "config.json"),
)


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
        """The file of the results, which marks the run as finished."""
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

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file, empty without one; RunError if it is damaged."""
        return read_json_if_any(self.path / name, RunError)

    def settings(self) -> dict[str, Any]:
        """Return the settings of a run or an export; raise RunError without any."""
        found = self.read(EXPORTED if self.exported else "config.json")
        if not is_run(found):
            raise RunError(f"{self.path}: expected a run with a config.json, found none")
        return found

    def config(self) -> RunConfig:
        """Return the configuration of a run or an export; raise RunError for an ensemble."""
        self.encoder()
        try:
            return RunConfig(**self.settings())
        except UserError as error:
            file = self.path / EXPORTED if self.exported else self.config_file
            raise RunError(f"{file}: {error}") from error

    def encoder(self) -> str:
        """Return the name of the run's initial encoder; raise RunError for an ensemble."""
        if "encoder" not in (found := self.settings()):
            raise RunError(f"{self.path}: expected a run with an encoder, found an {found['mode']}")
        return str(found["encoder"])

    def metrics(self) -> dict[str, Any] | None:
        """Return the results of a run; None if it is not finished, RunError if they are damaged."""
        return self.read("metrics.json") or None

    # Checkpoints

    def checkpoints(self, kind: str) -> list[Path]:
        """Return the checkpoints `best` or `last`, also incomplete ones, the oldest first."""
        found = [one for one in self.path.glob(f"{kind}*") if CHECKPOINT.fullmatch(one.name)]
        return sorted(found, key=lambda one: (len(one.name), one.name))

    def newest(self, kind: str) -> Path | None:
        """Return the newest complete checkpoint `best` or `last`; None without any."""
        complete = [one for one in self.checkpoints(kind) if (one / STATE).exists()]
        return complete[-1] if complete else None

    def weights(self) -> Path:
        """Return the folder with the weights of the best epoch, or of an export.

        Raise RunError if there are none, or if they are damaged.
        """
        if self.exported:
            return self.path
        if (best := self.newest("best")) is None:
            self.settings()  # raises RunError if there is no run at all
            raise RunError(f"{self.path}: expected a run with the weights in best, found none")
        read_state(best, RunError)
        return best

    def weights_checksum(self) -> str:
        """Return a checksum of the tensors in `weights`."""
        return digest_of_json([digest(one) for one in sorted(self.weights().glob("*.safetensors"))])

    def finish(self) -> None:
        """Name the best weights `best`, and delete the checkpoints from which a run resumes."""
        best = self.newest("best")
        if best is not None and best.name != "best":
            remove(self.path / "best")
            best.rename(self.path / "best")
        for one in (*self.checkpoints("best"), *self.checkpoints("last")):
            if one.name != "best":
                remove(one)

    # Before and after training

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process; raise RunError if another process does.

        A folder of other files is refused. What killed processes were writing is deleted.
        """
        self.check_ours()
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

    def check_ours(self) -> None:
        """Raise RunError if the folder has files, but no run, so that none is overwritten."""
        stored = read_json_if_any(self.config_file, RunError)
        if stored and not is_run(stored):
            raise RunError(f"{self.config_file}: expected a run's, found another program's")
        names = [] if stored else sorted(one.name for one in self.path.glob("*"))
        if found := next((n for n in names if n != "run.lock" and not n.startswith(".")), None):
            raise RunError(
                f"{self.path}: expected a new or empty folder, or a run, found {found} without "
                "a config.json; choose another --output"
            )

    def has_results(self) -> bool:
        """Return whether the folder holds metrics, predictions or a checkpoint."""
        found = self.metrics_file.exists() or any(self.predictions.glob("*"))
        return found or any(map(self.newest, ("best", "last")))

    def holds(
        self, config: RunConfig, data: Mapping[str, str], resume: bool, overwrite: bool
    ) -> bool:
        """Return whether this run is finished here, with equal configuration and data.

        Raise RunError if another run is here, and for an unfinished one without `resume`. With
        `overwrite`, and before anything is computed, the folder counts as empty.
        """
        if overwrite or not self.has_results():
            return False
        stored, asked = self.settings(), config.to_json()
        if key := different_key(stored, asked):
            old, new = stored.get(key), asked.get(key)
            if isinstance(old, dict) and isinstance(new, dict):
                inner = str(different_key(old, new))
                key, old = f"{key} {inner}", old.get(inner)
            line = f"here is a run with another {key}: {old!r}"
            advice = f"choose another --output, go on with --config {self.config_file}"
            raise RunError(f"{self.path}: {line}; {advice}, or add --overwrite")
        before = read_json(self.path / "data.json", RunError)
        if key := next((k for k in data if before.get(k) != data[k]), None):
            line = f"the run began with another {key} than there is now"
            advice = "restore it, choose another --output, or add --overwrite"
            raise RunError(f"{self.path}: {line}; {advice}")
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
            # Only a run's own files and folders go, and not the targets of links.
            checkpoints = (*self.checkpoints("best"), *self.checkpoints("last"))
            parts = (self.path / name for name in PARTS)
            for one in (self.metrics_file, *checkpoints, *parts):
                remove(one)
            write_json(self.config_file, config)
            write_json(self.path / "data.json", data)
        self.predictions.mkdir(exist_ok=True)

    def warn_if_unfinished(self) -> None:
        """Warn the caller's caller if the run has not finished; an export is never unfinished."""
        if not self.exported and not self.metrics_file.exists():
            line = "this run has not finished: its best epoch so far is used; --resume continues it"
            warnings.warn(f"{self.path}: {line}", Notice, stacklevel=3)


def different_key(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Return the first key in which two configurations as JSON differ; None if they are equal."""
    return next((key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)), None)


def run_of_predictions(path: Path) -> RunFolder:
    """Return the folder of the run that a prediction file, or a folder of them, is of."""
    folder = (path.parent if path.is_file() else path).resolve()
    return RunFolder(folder.parent if folder.name == "predictions" else folder)


def default_folder(config: RunConfig) -> Path:
    """Return `runs/<mode, tasks or method, encoder, seed>-<hash>` for a configuration."""
    method = [config.sampling.name, config.combiner.name]
    parts = [config.mode, *(method if config.mode == "multitask" else [*config.tasks][:5])]
    parts += [] if config.objective is None else [config.objective.name]
    parts += [Path(config.encoder).name, f"seed{config.seed}", config.digest()]
    return Path("runs") / "-".join(parts)
