"""The precision of a run: the one for `auto`, which a resumed run keeps."""

from __future__ import annotations

from pathlib import Path

from minbert.config import BiLSTMConfig
from minbert.device import choose_device
from minbert.folder import read_config
from minbert.precision import PrecisionChoice, choose_precision
from minbert.sources import NAMED_ENCODERS, find_folder
from multitask.runs import Run
from multitask.settings.config import RunConfig


def precision_of(config: RunConfig) -> PrecisionChoice:
    """Return the precision of a run; for `auto`, one that its encoder and its methods allow."""
    if config.precision != "auto":
        return PrecisionChoice(config.precision, "as requested")
    source = config.encoder
    if config.init is not None:
        source = str(Run(Path(config.init)).weights())
    bilstm = source not in NAMED_ENCODERS and isinstance(
        read_config(find_folder(source)), BiLSTMConfig
    )
    choice = choose_precision(config.precision, choose_device(config.device), bilstm)
    for one in config.regularizers:
        if one.precision_fault(choice.precision):
            return PrecisionChoice("fp32", f"{one.name} with these settings needs it")
    return choice


def with_precision(folder: Run, config: RunConfig, overwrite: bool) -> tuple[RunConfig, str | None]:
    """Return the configuration with a precision in place of `auto`, and a line about the choice.

    A run that is there keeps its precision, also on another machine. The line is None if a
    precision was requested.
    """
    if config.precision != "auto":
        return config, None
    began = {} if overwrite else folder.read("config.json")
    if "precision" in began:
        choice = PrecisionChoice(began["precision"], "the run began with it")
    else:
        choice = precision_of(config)
    return config.changed(precision=choice.precision), str(choice)
