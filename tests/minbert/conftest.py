"""Folders of small random encoders, written once per session by `transformers`."""

import json
import shutil

import peer_models
import pytest

from minbert import BiEncoder


@pytest.fixture(scope="session")
def bert_original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert") / "encoder"
    peer_models.save(folder, "BertModel")
    return folder


@pytest.fixture
def bert_folder(bert_original, tmp_path):
    """A copy of a BERT folder that a test may damage."""
    return shutil.copytree(bert_original, tmp_path / "bert")


@pytest.fixture
def edit_json():
    """Change keys of a JSON file; None removes one."""

    def edit(file, **changes):
        content = (json.loads(file.read_text()) if file.exists() else {}) | changes
        file.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))

    return edit


@pytest.fixture(scope="session")
def tiny():
    return BiEncoder.from_pretrained("tiny")


@pytest.fixture(scope="session")
def minilm():
    return BiEncoder.from_pretrained("minilm")
