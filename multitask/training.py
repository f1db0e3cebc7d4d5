"""Training from Python."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from common.settings import short
from multitask.control import RunControl
from multitask.run_folder import RunFolder, default_folder
from multitask.settings.config import RunConfig


class Run:
    """A run in a folder: its `folder`, `config` and `metrics`, and its `model` for new texts.

    `metrics` is the content of `metrics.json`, empty if the run is not finished.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.config = RunFolder(self.folder).config()
        self.metrics: dict[str, Any] = RunFolder(self.folder).metrics() or {}

    @cached_property
    def model(self) -> Any:
        """A `serving.MultiTaskModel`, or a `BiEncoder` after pre-training. Both have `encode`."""
        if self.config.pretrains:
            open_bi_encoder = import_module("multitask.assembly").open_bi_encoder
            return open_bi_encoder(RunFolder(self.folder).weights(), self.config)
        # Packages that depend on this one are imported only when they are needed.
        return import_module("serving").MultiTaskModel.load(self.folder)

    def compare(self, *others: Run | str | Path, **named: Run | str | Path) -> str:
        """Return the tables of mode compare for this run and others: means, gains, tests.

        A keyword names a system: `run.compare(weighted="runs/weighted")`.
        """
        several = [(None, self), *((None, one) for one in others), *named.items()]
        runs = [
            (name, one.folder if isinstance(one, Run) else Path(one).expanduser())
            for name, one in several
        ]
        return str(import_module("reports.comparison_tables").compared(runs))

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def train(
    config: RunConfig,
    folder: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Iterable[Any] = (),
) -> Run:
    """Train into a folder, or open the finished run of this configuration in it.

    Args:
        config: the configuration, also of pre-training.
        folder: folder of the run; None for one under `runs/`, named after the configuration.
        resume: continue an unfinished run.
        overwrite: start again in a folder that holds a run.
        callbacks: functions that are called with a `multitask.callbacks.EpochEnd` after each
            evaluation on dev, or objects with other hooks, too: see `multitask.callbacks`. One
            that returns `multitask.STOP` ends the training. They do not change the run's folder.

    Raises:
        common.errors.UserError: one line that says what was expected; its subclasses name the
            cause: SettingsError, RunError, DataError, EncoderError.
    """
    from multitask.run import complete

    if not isinstance(config, RunConfig):
        raise SettingsError(f"config: expected a RunConfig, found {short(config)}")
    target = default_folder(config) if folder is None else Path(folder).expanduser()
    control = RunControl(resume, overwrite, callbacks=tuple(callbacks))
    complete(config, target, control)
    return Run(target)
