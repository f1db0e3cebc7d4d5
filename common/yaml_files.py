"""Files of settings that a user writes, in YAML with each key once, or in JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.errors import RunError
from common.files import read_json


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings in a .json or .yaml file; raise RunError for other content."""
    import yaml

    if not file.is_file():
        found = "a folder" if file.is_dir() else "none"
        raise RunError(f"{file}: expected a .json or .yaml file of settings, found {found}")
    if file.suffix not in (".yaml", ".yml"):
        return read_json(file, RunError)
    try:
        content = yaml.load(file.read_text("utf-8"), loader())
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise RunError(f"{file}: expected settings in YAML, found: {error}") from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise RunError(f"{file}: expected settings by name, found {type(content).__name__}")
    return content


def loader() -> Any:
    """Return a safe loader of YAML that refuses a key that is given twice."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            keys = [key.value for key, _ in node.value]
            if twice := [key for key in keys if keys.count(key) > 1]:
                raise yaml.YAMLError(f"expected each key once, found {twice[0]} twice")
            return node

    return Loader
