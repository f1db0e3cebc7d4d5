"""Uploads to the hub: the library's functions are replaced by ones that keep the files here."""

import shutil

import huggingface_hub
import numpy as np
import pytest

from common.errors import UserError
from minbert import BiEncoder
from multitask import RunConfig, train
from serving import MultiTaskModel

TEXTS = ["A cat sleeps.", "a film to love"]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A folder for each repository, and the arguments of the calls."""
    calls = []

    def create_repo(repo_id, **more):
        calls.append({"repo": repo_id, **more})
        return f"https://huggingface.co/{repo_id}"

    def upload_folder(repo_id, folder_path, **more):
        calls.append({"repo": repo_id, **more})
        shutil.copytree(folder_path, tmp_path / repo_id)

    monkeypatch.setattr(huggingface_hub, "create_repo", create_repo)
    monkeypatch.setattr(huggingface_hub, "upload_folder", upload_folder)
    return calls


def test_an_encoder_is_uploaded_with_a_card_and_opens_again(hub, tmp_path):
    model = BiEncoder.from_pretrained("tiny")
    address = model.push_to_hub("me/tiny", private=True, token="secret")
    assert address == "https://huggingface.co/me/tiny"
    assert hub[0] == {"repo": "me/tiny", "private": True, "token": "secret", "exist_ok": True}
    assert hub[1]["commit_message"] == "Upload of a sentence encoder"
    again = BiEncoder.from_pretrained(tmp_path / "me/tiny")
    np.testing.assert_array_equal(again.encode(TEXTS), model.encode(TEXTS))
    card = (tmp_path / "me/tiny/README.md").read_text()
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    assert "BiEncoder.from_pretrained('me/tiny')" in card
    assert "32 wide, mean pooling" in card


@pytest.mark.parametrize(
    "settings",
    [{"tasks": ("sst",)}, {"mode": "pretrain", "objective": "simcse", "tasks": ("sst",)}],
)
def test_a_run_is_uploaded_with_its_heads_if_it_has_any(hub, tmp_path, settings):
    limits = {"limit": 8, "dev_limit": 8, "epochs": 1}
    run = train(RunConfig(encoder="tiny", **limits, **settings), tmp_path / "run")
    run.push_to_hub("me/run")
    folder = tmp_path / "me/run"
    card = (folder / "README.md").read_text()
    assert "me/run" in card
    assert "DIR" not in card
    if "mode" not in settings:
        assert 'MultiTaskModel.load(snapshot_download("me/run"))' in card
        again = MultiTaskModel.load(folder).predict(TEXTS)["sst"]
        np.testing.assert_array_equal(
            again.probabilities, run.model.predict(TEXTS)["sst"].probabilities
        )
    else:
        np.testing.assert_array_equal(
            BiEncoder.from_pretrained(folder).encode(TEXTS), run.model.encode(TEXTS)
        )


def test_a_hub_that_refuses_is_reported_in_one_line(hub, monkeypatch):
    def refuse(*_, **more):
        raise OSError("401\nUnauthorized")

    monkeypatch.setattr(huggingface_hub, "create_repo", refuse)
    with pytest.raises(UserError, match=r"hub 'me/tiny': cannot be written: 401 Unauthorized; .*"):
        BiEncoder.from_pretrained("tiny").push_to_hub("me/tiny")
