"""Train from Python: a configuration in, a finished run out."""

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

    `use` are methods from outside the tree that it was trained with.
    """

    def __init__(self, folder: str | Path, use: Outside = ()) -> None:
        self.folder, self.use = Path(folder), tuple(use)
        self.config = RunFolder(self.folder).config(self.use)

    @property
    def metrics(self) -> dict[str, Any]:
        """What `metrics.json` holds; empty where the run is not finished."""
        return RunFolder(self.folder).metrics() or {}

    @cached_property
    def model(self) -> Any:
        """A `serving.MultiTaskModel`; of pre-training a `BiEncoder`. Both have `encode`."""
        if self.config.pretrains:
            bi_encoder = import_module("minbert.bi_encoder").BiEncoder
            return bi_encoder.from_pretrained(RunFolder(self.folder).weights(), self.config.pooling)
        # Packages that stand above this one are imported when somebody asks for them.
        return import_module("serving").MultiTaskModel.load(self.folder, use=self.use)

    def compare(self, *others: Run | str | Path) -> str:
        """Tables of this run beside others, as mode compare prints them: means, gains, tests."""
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
    """Train into a folder, or open the finished run of this configuration that it holds.

    Args:
        config: what is trained, and how; of pre-training, too.
        folder: of the run; None for one under `runs/`, named by the configuration.
        resume: go on with an unfinished run.
        overwrite: start again in a folder that holds a run.
        verbose: report which linear layers are used, and why.

    Raises:
        SettingsError, RunError, DataError, EncoderError: one line, with what was expected.
    """
    from multitask.run import complete

    if resume and overwrite:
        raise SettingsError("resume and overwrite: expected at most one of them")
    target = default_folder(config) if folder is None else Path(folder)
    complete(config, target, RunControl(resume=resume, overwrite=overwrite, verbose=verbose))
    return Run(target, config.outside)
