"""Training from Python: from a configuration to a finished run."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.flat import Outside
from multitask.run_folder import RunFolder, default_folder


class Run:
    """A finished run: its `folder`, `config` and `metrics`, and its `model` for new texts.

    `use` lists the user's own methods that the run was trained with.
    """

    def __init__(self, folder: str | Path, use: Outside = ()) -> None:
        self.folder, self.use = Path(folder), tuple(use)
        self.config = RunFolder(self.folder).config(self.use)

    @property
    def metrics(self) -> dict[str, Any]:
        """The content of `metrics.json`; empty if the run is not finished."""
        return RunFolder(self.folder).metrics() or {}

    @cached_property
    def model(self) -> Any:
        """A `serving.MultiTaskModel`, or a `BiEncoder` after pre-training. Both have `encode`."""
        if self.config.pretrains:
            bi_encoder = import_module("minbert.bi_encoder").BiEncoder
            return bi_encoder.from_pretrained(RunFolder(self.folder).weights(), self.config.pooling)
        # Packages that depend on this one are imported only when they are needed.
        return import_module("serving").MultiTaskModel.load(self.folder, use=self.use)

    def compare(self, *others: Run | str | Path) -> str:
        """Return the tables of mode compare for this run and others: means, gains, tests."""
        folders = [one.folder if isinstance(one, Run) else Path(one) for one in others]
        return str(import_module("reports.comparison_tables").compared([self.folder, *folders]))

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def train(
    config: RunConfig,
    folder: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    verbose: bool = False,
) -> Run:
    """Train into a folder, or open the finished run of this configuration in it.

    Args:
        config: the configuration, also of pre-training.
        folder: folder of the run; None for one under `runs/`, named after the configuration.
        resume: continue an unfinished run.
        overwrite: start again in a folder that holds a run.
        verbose: report which implementation of linear layers is used, and why.

    Raises:
        SettingsError, RunError, DataError, EncoderError: one line that says what was expected.
    """
    from multitask.run import complete

    if resume and overwrite:
        raise SettingsError("resume and overwrite: expected at most one of them")
    target = default_folder(config) if folder is None else Path(folder)
    complete(config, target, RunControl(resume=resume, overwrite=overwrite, verbose=verbose))
    return Run(target, config.outside)
