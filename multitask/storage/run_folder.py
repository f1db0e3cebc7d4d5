"""The folder of a run: its lock and its content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from common.atomic_files import kind_of, remove
from common.errors import RunError
from common.folder_content import foreign_name, locked_folder
from common.json_files import checksums, read_json, read_json_if_any, write_json
from common.run_files import CHECKPOINTS, EXPORTED
from multitask.settings.config import RunConfig
from multitask.settings.methods import UserMethods
from multitask.storage.checkpoint_folders import (
    BEST,
    CheckpointError,
    newest_first,
    published,
)
from multitask.storage.metrics_file import OF_TRAINING, read_metrics
from multitask.storage.stored_config import check_of_run, read_config
from tasks.predictions import scores_name

CODE = "code"  # copies of the user's files with methods, never executed
SOFT_TARGETS = "soft-targets"  # scores of the run for the training examples of its students
FOLDERS = ("predictions", CHECKPOINTS, "tensorboard", CODE, SOFT_TARGETS)
SOURCE_RUNS = "source-runs.json"  # the checksums of the weights of other runs that it needs
CALIBRATION = "calibration.json"  # in an exported folder, too
DATA = "data.json"  # the checksums of the files that the run read
# The configuration is removed last, because it marks the folder as a run.
FILES = (
    *("metrics.json", "telemetry.jsonl", "ids.json", SOURCE_RUNS, CALIBRATION, DATA),
    "config.json",
)
LOCK = "run.lock"


def run_of_predictions(path: Path) -> RunFolder:
    """Return the folder of the run that a prediction file, or a folder of them, is of.

    Files of other programs have none; `has_config` is then false.
    """
    folder = (path.parent if path.is_file() else path).resolve()
    return RunFolder(folder.parent if folder.name == "predictions" else folder)


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
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def best(self) -> Path:
        """The folder with the weights of the best epoch."""
        return self.checkpoints / BEST

    @property
    def steps(self) -> Path:
        """The file with one line per step."""
        return self.path / "telemetry.jsonl"

    @property
    def predictions(self) -> Path:
        return self.path / "predictions"

    def scores(self, task: str, split: str) -> Path:
        """Return the file with a task's probabilities or similarities on a split."""
        return self.predictions / scores_name(task, split)

    def settings_if_any(self) -> dict[str, Any] | None:
        """Return the content of `config.json`; None without one, RunError if it is invalid."""
        return read_json(self.config_file, RunError) if self.config_file.exists() else None

    def settings(self) -> dict[str, Any]:
        """Return the content of `config.json`; raise RunError without one."""
        content = self.settings_if_any()
        if content is None:
            raise RunError(f"{self.path}: expected a run with a config.json, found none")
        return content

    def has_config(self) -> bool:
        """Return whether there is a `config.json`; raise RunError if it is invalid."""
        return self.settings_if_any() is not None

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write `config.json`, which marks the folder as a run."""
        write_json(self.config_file, dict(config))

    def config(self, use: UserMethods = ()) -> RunConfig:
        """Return the configuration of the run, which may `use` a user's own methods."""
        return read_config(self.settings(), self.config_file, use)

    def model_config(self, use: UserMethods = ()) -> RunConfig:
        """Return the configuration of an export, or of a run of tasks, that has weights.

        Raise RunError if there are none, or for pre-training, which has no heads.
        """
        self.published_weights()
        content, file = self.model_settings()
        if content.get("mode") == "pretrain":
            raise RunError(f"{self.path}: expected a run of tasks, found one of mode pretrain")
        return read_config(content, file, use)

    def model_settings(self) -> tuple[dict[str, Any], Path]:
        """Return the settings of an export or of a run, and their file; RunError without any."""
        exported = self.path / EXPORTED
        if exported.exists():
            return read_json(exported, RunError), exported
        return self.settings(), self.config_file

    def check_not_exported(self) -> None:
        """Raise RunError for the folder of an export, to which nothing is added."""
        if (self.path / EXPORTED).exists():
            raise RunError(f"{self.path}: expected the folder of a run, found an export")

    def encoder(self) -> str:
        """Return the name of the run's initial encoder; raise RunError if there is no run."""
        encoder = self.settings().get("encoder")
        if not isinstance(encoder, str):
            line = f"expected a run's encoder, found {encoder!r}"
            raise RunError(
                f"{self.config_file}: {line}; expected the folder of a run, not one in it"
            )
        return encoder

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics of a trained run; None if it is not finished."""
        metrics = self.read_metrics()
        if lacking := [key for key in OF_TRAINING if metrics is not None and key not in metrics]:
            line = f"expected the metrics of a run, found no {lacking[0]}"
            raise RunError(f"{self.metrics_file}: {line}")
        return metrics

    def read_metrics(self) -> dict[str, Any] | None:
        """Return the metrics of a run or of a merge of runs; None without a `metrics.json`.

        Raise RunError if it is not valid.
        """
        return read_metrics(self.metrics_file) if self.metrics_file.exists() else None

    def weights(self, config: Mapping[str, object] | None = None) -> Path:
        """Return the folder with the weights of the best epoch, or of an export.

        Raise RunError if there are none, and CheckpointError if they have another configuration
        than `config`, by default the one in the folder.
        """
        best = self.published_weights()
        if best != self.path:
            try:
                check_of_run(best, self.settings() if config is None else config)
            except CheckpointError as error:
                message = f"{error}; restore {self.config_file}, or the checkpoint of its run"
                raise CheckpointError(message) from error
        return best

    def data_checksums(self) -> dict[str, Any]:
        """Return the checksums of the files that the run read; empty if none are stored."""
        return read_json_if_any(self.path / DATA, RunError)

    def weights_checksum(self) -> str:
        """Return the SHA-256 of all files of `published_weights`."""
        return sha256(checksums(self.published_weights()).encode()).hexdigest()

    def weights_if_any(self) -> Path | None:
        """Return the folder with weights without checking their run; None without any."""
        return self.path if (self.path / EXPORTED).exists() else published(self.best)

    def published_weights(self) -> Path:
        """Return the folder with weights without checking their run; raise RunError without any."""
        if (found := self.weights_if_any()) is None:
            raise RunError(f"{self.path}: expected a run with checkpoint/best, found none")
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this process, as `locked_folder` does.

        A folder that belongs to no run is refused before anything is written into it.
        """
        if self.path.is_dir():
            self.run_or_nothing()
        with locked_folder(self.path, LOCK):
            yield

    def run_or_nothing(self) -> dict[str, Any] | None:
        """Return the configuration of the run; None if the folder is empty or missing.

        Raise RunError if a file or folder that is not of a run has the name of one of its parts, so
        that no file of the user is ever overwritten, or if there are other files and no run.
        The lock and hidden files, which temporary ones are, do not count.
        """
        for name in FOLDERS + FILES:
            path = self.path / name
            if path.exists() and not (path.is_dir() if name in FOLDERS else path.is_file()):
                kind = "a folder" if name in FOLDERS else "a file"
                raise RunError(f"{path}: expected {kind} of a run, or nothing, found neither")
        if (stored := self.settings_if_any()) is not None:
            if not {"mode", "tasks", "seed"} <= stored.keys():
                line = "expected a run's, found another program's"
                raise RunError(f"{self.config_file}: {line}")
            return stored
        if found := foreign_name(self.path, (LOCK,)):
            raise RunError(
                f"{self.path}: expected a new or empty folder, or a run, found {found} without "
                "a config.json; choose another --output"
            )
        return None

    def has_results(self) -> bool:
        """Return whether the folder holds results: metrics, predictions or a checkpoint."""
        return (
            self.metrics_file.exists()
            or any(kind_of(file) is None for file in self.path.glob("predictions/*"))
            or bool(newest_first(self.checkpoints))
            or self.best.exists()
        )

    def remove(self) -> None:
        """Delete a run's own files and folders, but not the targets of links.

        The metrics are the first, because they mark the run as finished.
        """
        for name in ("metrics.json", *FOLDERS, *FILES):
            remove(self.path / name)
