"""YAML files that a user writes, with each key once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from common.errors import RunError, UserError
from common.files import check_regular, read_json

FLOAT, BOOL = "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool"


def read_yaml(
    file: Path, what: str, error_class: type[UserError], words_are_texts: bool = False
) -> Any:
    """Return the content of a YAML file; raise `error_class` if it is not `what`.

    With `words_are_texts`, yes, no, on, off and 1e5 are texts, as names of classes and columns may
    be; otherwise the first four are true or false, and 1e5 is a number.
    """
    import yaml

    check_regular(file, error_class)
    if not file.exists():
        raise error_class(f"{file}: expected {what} in YAML, found no file")
    try:
        return yaml.load(file.read_text("utf-8"), loader(words_are_texts))
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


def loader(words_are_texts: bool) -> Any:
    """Return a safe loader of YAML that refuses a key that is given twice."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            keys = [key.value for key, _ in node.value]
            if twice := [key for key in keys if keys.count(key) > 1]:
                raise yaml.YAMLError(f"expected each key once, found {twice[0]} twice")
            return node

    if words_are_texts:
        Loader.yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in several if tag != BOOL]
            for first, several in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }
        words = re.compile("(true|True|TRUE|false|False|FALSE)$")
        Loader.add_implicit_resolver(BOOL, words, list("tTfF"))
    else:
        number = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")
        Loader.add_implicit_resolver(FLOAT, number, list("-+0123456789"))
    return Loader
