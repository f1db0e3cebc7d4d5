"""The precision of a run: the one for `auto`, and the one that a resumed run keeps."""

from __future__ import annotations

from pathlib import Path

import torch

from common.errors import RunError
from minbert.config import PRECISIONS, BiLSTMConfig
from minbert.device import choose_device
from minbert.folder import read_config
from minbert.precision import PrecisionChoice, choose_precision
from minbert.sources import NAMED_ENCODERS, find_folder
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig

BEGAN = "the run began with it"


def training_precision(config: RunConfig, device: torch.device, bilstm: bool) -> PrecisionChoice:
    """Return the precision of a run; for `auto`, one that its encoder and its methods allow."""
    choice = choose_precision(config.precision, device, bilstm)
    if config.precision == "auto":
        for one in config.regularizers:
            if one.precision_fault(choice.precision):
                return PrecisionChoice("fp32", f"{one.name} with these settings needs it")
    return choice


def precision_before_loading(config: RunConfig) -> PrecisionChoice:
    """Return the precision of a run, which depends on the kind of its encoder."""
    source = config.encoder
    if config.init is not None:
        source = str(RunFolder(Path(config.init)).weights())
    bilstm = source not in NAMED_ENCODERS and isinstance(
        read_config(find_folder(source)), BiLSTMConfig
    )
    return training_precision(config, choose_device(config.device), bilstm)


def with_precision(
    folder: RunFolder, config: RunConfig, overwrite: bool
) -> tuple[RunConfig, str | None]:
    """Return the configuration with a precision in place of `auto`, and a line about the choice.

    A resumed run keeps its precision, also on another machine. The line is None if a precision was
    requested.
    """
    if config.precision != "auto":
        return config, None
    found = None if overwrite else stored_precision(folder)
    choice = precision_before_loading(config) if found is None else PrecisionChoice(found, BEGAN)
    return config.changed(precision=choice.precision), str(choice)


def stored_precision(folder: RunFolder) -> str | None:
    """Return the precision with which a run began; None for a new run.

    Raise RunError for an unknown one.
    """
    if not (began := folder.settings_if_any()):
        return None
    found: str = began.get("precision", "fp32")
    if found not in PRECISIONS:
        expected = f"expected {' or '.join(PRECISIONS)}, found {found!r}"
        raise RunError(f"{folder.config_file}: precision: {expected}")
    return found
