"""JSON objects on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minbert.errors import EncoderError, UserError
from minbert.files import check_regular, write_whole


def read_json(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """The object in a file; `error_class`, with one line, for anything else."""
    check_regular(file, error_class)
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise error_class(f"{file}: expected a JSON object, found: {error}") from error
    if not isinstance(content, dict):
        raise error_class(f"{file}: expected a JSON object, found a {type(content).__name__}")
    return content


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write an object, whole or not at all."""
    write_whole(file, json.dumps(content, indent=2) + "\n")
