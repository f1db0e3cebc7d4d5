"""The files of a run or an export, and the checksums that make a folder complete."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import EncoderError, UserError
from common.files import digest, read_json, write_json

STATE = "state.json"  # of a complete checkpoint: what it is, and the checksums of its files
EXPORTED = "run.json"  # the settings of an exported run, whose config.json is the encoder's
HEADS = "heads.safetensors"  # of a checkpoint or an export


def is_run(config: Mapping[str, Any]) -> bool:
    """Return whether the content of a config.json is the settings of a run, not an encoder's."""
    return {"mode", "tasks"} <= config.keys()


def digest_of_json(content: Any) -> str:
    """Return the SHA-256 of a value as JSON."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def complete_folder(folder: Path, state: Mapping[str, Any]) -> None:
    """Write `state` and the checksums of the files in a folder, which make it complete."""
    files = [one for one in sorted(folder.rglob("*")) if one.is_file()]
    digests = {str(one.relative_to(folder)): digest(one) for one in files}
    content = {"files": digests, "state": state}
    write_json(folder / STATE, {**content, "sha256": digest_of_json(content)})


def read_state(folder: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """Return the state of a complete folder; raise `error_class` if one of its files changed."""
    content = read_json(folder / STATE, error_class)
    own = content.pop("sha256", None) == digest_of_json(content)
    for name, checksum in content["files"].items() if own else [(STATE, "")]:
        if not own or not (folder / name).is_file() or digest(folder / name) != checksum:
            line = "damaged or missing; restore it, or train or export again"
            raise error_class(f"{folder / name}: {line}")
    state: dict[str, Any] = content["state"]
    return state
