"""What a run left in its folder, read again: configuration, metrics, the best weights."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from common.errors import UserError
from common.json_files import read_json, read_sealed
from multitask.atomic_dirs import BEST, CONFIG, CheckpointError, of_run, published
from multitask.config import RunConfig
from multitask.errors import RunError
from multitask.flat import Outside
from tasks.metrics import impossible

EXPORTED = "run.json"  # in an exported folder, whose config.json is the encoder's
OF_A_SOUP = ("method", "members")  # beside the configuration of a run
SETTINGS_ERRORS = (
    *(RuntimeError, OSError, KeyError, TypeError, ValueError, AttributeError, AssertionError),
    ZeroDivisionError,
)
REMEDY = "restore it, or --overwrite the run"
Figures = dict[str, dict[str, float] | float]  # of tasks, and overall


class Metrics(TypedDict):
    """What `metrics.json` of a trained run holds; further keys are left alone."""

    dev: Figures
    best_epoch: int
    epochs: int
    steps: int
    combiner_steps: dict[str, int]
    training_seconds: float
    examples_per_second: float
    seconds: float


def finished_metrics(folder: Path) -> dict[str, Any] | None:
    """The metrics of a finished run, None if the folder holds none."""
    path = folder / "metrics.json"
    if not path.exists():
        return None
    metrics = read_metrics(path)
    try:
        msgspec.convert(metrics, Metrics)
    except msgspec.ValidationError as error:
        raise RunError(f"{path}: expected the metrics of a run, found: {error}") from error
    return metrics


def read_metrics(file: Path) -> dict[str, Any]:
    """What a `metrics.json` holds; RunError for one that was edited.

    Those of older versions have no checksum and are read as they are: a run has none of the two, a
    checksum of its metrics and its configuration in `checkpoint/best`, or both.
    """
    required = (best_folder(file.parent) / CONFIG).exists()
    content = read_sealed(file, RunError, REMEDY, required)
    if wrong := impossible(content.get("dev", {})):
        raise RunError(f"{file}: dev: {wrong}; {REMEDY}")
    return content


def encoder_of(folder: Path) -> str:
    """The encoder that the run in a folder began from; RunError if there is no run."""
    if not (folder / "config.json").exists():
        raise RunError(f"{folder}: expected a run with a config.json, found none")
    encoder = read_json(folder / "config.json", RunError).get("encoder")
    if not isinstance(encoder, str):
        raise RunError(f"{folder / 'config.json'}: expected a run's encoder, found {encoder!r}")
    return encoder


def config_of_tasks(folder: Path, use: Outside = ()) -> RunConfig:
    """The configuration of a run whose best weights are there, heads among them.

    RunError where there is none, or one of pre-training, whose heads nobody asks for.
    """
    published_weights(folder)
    exported = folder / EXPORTED
    file = exported if exported.exists() else folder / "config.json"
    content = read_json(file, RunError)
    if content.get("mode") == "pretrain":
        raise RunError(f"{folder}: expected a run of tasks, found one of mode pretrain")
    return read_config(content, file, use)


def best_folder(run: Path) -> Path:
    """Where a run publishes its best epoch."""
    return run / "checkpoint" / BEST


def best_weights(folder: Path, config: Mapping[str, object] | None = None) -> Path:
    """Where the weights of a run's best epoch are, or an export's.

    Raises RunError without any, and CheckpointError where they are of another configuration than
    `config`, by default the one in the folder. Weights of an older version, which did not write
    down whose they are, are used with a message.
    """
    best = published_weights(folder)
    if best == folder:
        return best
    if config is None:
        if not (folder / "config.json").exists():
            raise RunError(f"{folder}: expected a run with a config.json, found none")
        config = read_json(folder / "config.json", RunError)
    try:
        known = of_run(best, config)
    except CheckpointError as error:
        raise CheckpointError(
            f"{error}; restore {folder / 'config.json'}, or the checkpoint of its run"
        ) from error
    if not known:
        print(
            f"{best}: written by an older version, without the configuration of its run: whether "
            f"{folder / 'config.json'} is that of these weights is not checked",
            file=sys.stderr,
            flush=True,
        )
    return best


def published_weights(folder: Path) -> Path:
    """The same, whichever run's they are: an export's own folder; RunError without any."""
    if (folder / EXPORTED).exists():
        return folder
    best = published(best_folder(folder))
    if best is None:
        raise RunError(f"{folder}: expected a run with checkpoint/best, found none")
    return best


@contextmanager
def settings_of(folder: Path) -> Iterator[None]:
    """Tasks, heads and weights are made from a stored run, which may come from anywhere.

    What its settings break there becomes a RunError of one line.
    """
    try:
        yield
    except UserError:
        raise
    except SETTINGS_ERRORS as error:
        found = f"{type(error).__name__}: {error}"
        raise RunError(f"{folder}: expected a run and its heads, found {found}") from error


def read_settings(file: Path) -> dict[str, Any]:
    """Settings by name in a .json or .yaml file; RunError where it holds anything else."""
    if not file.is_file():
        raise RunError(f"{file}: expected a .json or .yaml file of settings, found none")
    if file.suffix not in (".yaml", ".yml"):
        return read_json(file, RunError)
    import yaml

    try:
        found = yaml.load(file.read_text("utf-8"), settings_loader())
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise RunError(f"{file}: expected settings in YAML: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise RunError(f"{file}: expected settings by name, found {type(found).__name__}")
    return found


def settings_loader() -> Any:
    """YAML's safe types, with numbers as in `lr: 1e-5`; a key that comes twice is an error."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [key.value for key, _ in node.value]
            if twice := [key for key in keys if keys.count(key) > 1]:
                raise yaml.YAMLError(f"expected each key once, found {twice[0]} twice")
            return super().construct_mapping(node, deep)

    number = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789"))
    return Loader


def read_config(content: Mapping[str, Any], file: Path, use: Outside = ()) -> RunConfig:
    """A stored configuration, of a run that may `use` methods from outside the tree.

    RunError, with the file, where it is none.
    """
    try:
        settings = {k: v for k, v in content.items() if k not in OF_A_SOUP}
        return RunConfig.from_json(settings, use)
    except UserError as error:
        raise RunError(f"{file}: {error}") from error
