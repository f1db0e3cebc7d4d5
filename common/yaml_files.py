"""Files of settings that a user writes, in YAML with each key once, or in JSON."""

import json
from pathlib import Path
from typing import Any

from common.errors import RunError
from common.files import check_regular, read_json

LONGEST = 100_000  # bytes; PyYAML reads them in two seconds


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings in a .json or .yaml file; raise RunError for other content."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML with each key once, and without tags and aliases."""

        def compose_node(self, *place: Any) -> Any:
            event = self.peek_event()
            if isinstance(event, yaml.AliasEvent) or event.tag is not None:
                raise yaml.YAMLError(f"a tag or an alias in line {event.start_mark.line + 1}")
            return super().compose_node(*place)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            found = super().construct_mapping(node, deep)
            if len(found) < len(node.value):
                raise yaml.YAMLError(f"a key twice, after line {node.start_mark.line + 1}")
            return found

    check_regular(file, RunError)
    if file.suffix not in (".yaml", ".yml"):
        return read_json(file, RunError)
    try:
        if file.stat().st_size > LONGEST:
            raise ValueError(f"more than {LONGEST:,} bytes; JSON may be longer")
        # As from a JSON file: a date is a text, and so is each key.
        content = json.loads(json.dumps(yaml.load(file.read_text("utf-8"), Loader), default=str))
    except (OSError, ValueError, TypeError, OverflowError, yaml.YAMLError, RecursionError) as error:
        raise RunError(f"{file}: expected settings in YAML, found: {error}") from error
    if not isinstance(content, dict):
        raise RunError(f"{file}: expected settings by name, found {type(content).__name__}")
    return content
