"""Settings of a sentence-transformers folder; folders that are not replaced."""

import json

import pytest

from common.errors import EncoderError, SettingsError
from minbert import BiEncoder
from minbert.folder import SentenceSettings, read_sentence_settings, write_sentence_settings


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
    with pytest.raises(EncoderError, match="expected an encoder, found a run"):
        encoder.save_pretrained(ensemble)
