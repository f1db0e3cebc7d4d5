"""The default name of a run's folder."""

from __future__ import annotations

from pathlib import Path

from multitask.settings.config import RunConfig

LONGEST_NAME = 200  # characters of a folder's name; file systems allow 255 bytes


def default_folder(config: RunConfig) -> Path:
    """Return `runs/<mode, method, encoder, precision, seed>-<hash>` for a configuration.

    Tasks whose names would make it too long for a file system are counted.
    """
    complete = folder_name(config, "-".join(config.tasks))
    if len(complete) > LONGEST_NAME:
        complete = folder_name(config, f"{len(config.tasks)}-tasks")
    return Path("runs") / complete


def folder_name(config: RunConfig, names: str) -> str:
    """Return the name of a configuration's folder with `names` in place of its tasks."""
    parts: list[str] = [config.mode]
    if config.mode in ("single", "probe"):
        parts += [names]
    elif config.pretrains:
        parts += [config.objective.name] + [names] * bool(names)
    else:
        parts += [config.sampling.name, config.combiner.name]
    if not config.pretrains and config.objective is not None:
        parts += [config.objective.name]
    if config.branch is not None:
        parts += [config.branch]
    parts += [Path(config.encoder).name, config.precision, f"seed{config.seed}", config.digest()]
    return "-".join(parts)
