"""YAML files that a user writes, with each key once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from common.errors import RunError, UserError
from common.files import check_regular, read_json

FLOAT = "tag:yaml.org,2002:float"


def read_yaml(file: Path, what: str, error_class: type[UserError], texts: bool = False) -> Any:
    """Return the content of a YAML file; raise `error_class` if it is not `what`.

    With `texts`, all values are texts, as names of classes and columns are: yes, 1e5, and "" for a
    missing one. Otherwise yes, no, on and off are true or false, and 1e5 is a number.
    """
    import yaml

    check_regular(file, error_class)
    if not file.exists():
        raise error_class(f"{file}: expected {what} in YAML, found no file")
    try:
        return yaml.load(file.read_text("utf-8"), loader(texts))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise error_class(f"{file}: expected {what} in YAML, found: {error}") from error


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings in a .json or .yaml file; raise RunError for other content."""
    if not file.is_file():
        found = "a folder" if file.is_dir() else "none"
        raise RunError(f"{file}: expected a .json or .yaml file of settings, found {found}")
    if file.suffix not in (".yaml", ".yml"):
        return read_json(file, RunError)
    found = read_yaml(file, "settings", RunError)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise RunError(f"{file}: expected settings by name, found {type(found).__name__}")
    return found


def loader(texts: bool) -> Any:
    """Return a safe loader of YAML that refuses a key that is given twice."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            keys = [key.value for key, _ in node.value]
            if twice := [key for key in keys if keys.count(key) > 1]:
                raise yaml.YAMLError(f"expected each key once, found {twice[0]} twice")
            return node

    if texts:
        Loader.yaml_implicit_resolvers = {}
    else:
        number = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")
        Loader.add_implicit_resolver(FLOAT, number, list("-+0123456789"))
    return Loader
