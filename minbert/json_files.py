"""JSON objects on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minbert.errors import EncoderError


def read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise EncoderError(f"{file}: expected a JSON object, found {error}") from error
    if not isinstance(content, dict):
        raise EncoderError(f"{file}: expected a JSON object, found a {type(content).__name__}")
    return content


def write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n")
