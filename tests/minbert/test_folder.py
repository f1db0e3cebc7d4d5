"""What a sentence-transformers folder says beside the encoder."""

import json

import pytest

from common.errors import EncoderError
from minbert import BiEncoder
from minbert.folder import SentenceSettings, read_sentence_settings, write_sentence_settings


def sentence_folder(folder, pooling, kinds=("Pooling",)):
    modules = [{"type": "sentence_transformers.models.Transformer", "path": ""}]
    modules += [
        {"type": f"sentence_transformers.models.{kind}", "path": f"{i}_{kind}"}
        for i, kind in enumerate(kinds, 1)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def test_a_plain_folder_says_nothing(tmp_path):
    assert read_sentence_settings(tmp_path) == SentenceSettings()


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("normalize", [True, False])
def test_round_trip(tmp_path, pooling, normalize):
    settings = SentenceSettings(pooling, normalize, 77, lower=True)
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
def test_old_flags_and_new_names_of_a_pooling(tmp_path, content, expected):
    assert read_sentence_settings(sentence_folder(tmp_path, content)).pooling == expected


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "mean+cls"),
        ({"pooling_mode_weightedmean_tokens": True}, "pooling_mode_weightedmean_tokens"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        ({}, "''"),
    ],
)
def test_a_pooling_we_lack_is_refused(tmp_path, content, found):
    with pytest.raises(EncoderError, match="expected pooling mean, cls, max") as caught:
        read_sentence_settings(sentence_folder(tmp_path, content))
    assert found in str(caught.value)
    assert "1_Pooling" in str(caught.value)


def test_a_module_we_lack_is_refused(tmp_path):
    sentence_folder(tmp_path, {"pooling_mode": "mean"}, kinds=("Pooling", "Dense"))
    with pytest.raises(EncoderError, match=r"modules\.json: expected .* found Dense"):
        read_sentence_settings(tmp_path)


@pytest.mark.parametrize(
    ("limit", "expected"), [(10, 10), (40, 40), (1000, 40), (None, 40)], ids=str
)
def test_the_length_limit_is_obeyed_up_to_the_position_table(
    bert_folder, edit_json, limit, expected
):
    edit_json(bert_folder / "sentence_bert_config.json", max_seq_length=limit, do_lower_case=False)
    model = BiEncoder.from_pretrained(bert_folder)
    assert model.tokenizer.max_tokens == expected
    assert model.tokenizer(["the cat " * 100]).lengths.tolist() == [expected]


def test_the_limit_of_version_6_lies_with_the_tokenizer(bert_folder, edit_json):
    edit_json(bert_folder / "sentence_bert_config.json", transformer_task="feature-extraction")
    edit_json(bert_folder / "tokenizer_config.json", model_max_length=12)
    assert read_sentence_settings(bert_folder).max_tokens == 12


def test_roberta_has_fewer_tokens_than_positions(roberta_folder, edit_json):
    assert BiEncoder.from_pretrained(roberta_folder).tokenizer.max_tokens == 38
    edit_json(roberta_folder / "sentence_bert_config.json", max_seq_length=40)
    assert BiEncoder.from_pretrained(roberta_folder).tokenizer.max_tokens == 38


@pytest.mark.parametrize("name", ["config.json", "sentence_bert_config.json"])
@pytest.mark.parametrize("content", ["{", "[]", '"a"', "\xff"])
def test_a_file_that_is_no_json_object_is_named(bert_folder, name, content):
    (bert_folder / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(EncoderError, match="expected a JSON object") as caught:
        BiEncoder.from_pretrained(bert_folder)
    assert str(bert_folder / name) in str(caught.value)
    assert "\n" not in str(caught.value)
