"""Upload of a folder to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from common.errors import UserError


def upload(folder: Path, repo: str, private: bool, token: str | None, message: str) -> str:
    """Upload a folder's files to `owner/name`, which is created if necessary.

    Return the address of the repository. Raise UserError with one line if that is impossible.
    """
    import huggingface_hub

    try:
        address = huggingface_hub.create_repo(repo, token=token, private=private, exist_ok=True)
        huggingface_hub.upload_folder(
            repo_id=repo, folder_path=folder, token=token, commit_message=message
        )
    except Exception as error:  # the library does not wrap the errors of its HTTP client
        raise UserError(
            f"hub {repo!r}: cannot be written: {error}; expected a network, an owner/name of "
            "yours, and a token (hf auth login)"
        ) from error
    return str(address)
