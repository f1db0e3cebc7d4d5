"""Names of a run's parts that an encoder's folder must not have, and what marks its config.json."""

from collections.abc import Mapping
from typing import Any

CHECKPOINTS = "checkpoint"  # folder in that of a run
EXPORTED = "run.json"  # in an exported folder, in which config.json is the encoder's
CHECKPOINT_PARTS = ("model", "optimizer")  # of a checkpoint, beside those of regularisers
# In a checkpoint and in an exported folder.
HEADS = "heads.safetensors"
BRANCHES = "branches.safetensors"


def is_run(config: Mapping[str, Any]) -> bool:
    """Return whether the content of a config.json is the settings of a run, not an encoder's."""
    return {"mode", "tasks"} <= config.keys()
