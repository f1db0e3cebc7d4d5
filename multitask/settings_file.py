"""Reading of settings from JSON and YAML files, and of stored configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.json_files import read_json
from multitask.config import RunConfig
from multitask.errors import RunError
from multitask.flat import Outside

OF_A_SOUP = ("method", "members")  # further keys of a soup, besides the configuration
SETTINGS_ERRORS = (
    *(RuntimeError, OSError, KeyError, TypeError, ValueError, AttributeError, AssertionError),
    ZeroDivisionError,
)


@contextmanager
def settings_of(folder: Path) -> Iterator[None]:
    """Turn errors that the settings of a stored run cause into a RunError of one line.

    Use this context to build tasks, heads and weights from a run of unknown origin.
    """
    try:
        yield
    except UserError:
        raise
    except SETTINGS_ERRORS as error:
        found = f"{type(error).__name__}: {error}"
        raise RunError(f"{folder}: expected a run and its heads, found {found}") from error


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings in a .json or .yaml file; raise RunError for other content."""
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
    """Return a safe YAML loader that reads 1e-5 as a number and refuses duplicate keys."""
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
    """Return a stored configuration of a run, which may `use` a user's own methods.

    Raise RunError with the name of the file if it is invalid.
    """
    try:
        settings = {k: v for k, v in content.items() if k not in OF_A_SOUP}
        return RunConfig.from_json(settings, use)
    except UserError as error:
        raise RunError(f"{file}: {error}") from error
