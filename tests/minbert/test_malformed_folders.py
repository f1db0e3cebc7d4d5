"""Every malformed file of an encoder's folder gives one line that names it, and no traceback."""

import json
import shutil

import pytest
import torch

from common.errors import EncoderError
from minbert import BiEncoder


def change_json(**changes):
    def change(file):
        content = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(content | changes))

    return change


def write(content):
    def change(file):
        file.write_bytes(content)

    return change


def pickled(content):
    def change(file):
        (file.parent / "model.safetensors").unlink()
        torch.save(content, file)

    return change


def bare_pickle(content):
    def change(file):
        (file.parent / "model.safetensors").unlink()
        file.write_bytes(content)

    return change


CASES = [
    ("config.json", write(b"{"), "config.json"),
    ("config.json", write(b"[]"), "found a list"),
    ("config.json", change_json(num_attention_heads=0), "num_attention_heads: expected a whole"),
    ("config.json", change_json(hidden_size="abc"), "hidden_size: expected a whole number"),
    ("config.json", change_json(model_type=["bert"]), "model_type: expected one of"),
    ("config.json", change_json(model_type="gpt2"), "found 'gpt2'"),
    ("config.json", change_json(hidden_dropout_prob=1.5), "hidden_dropout_prob: expected a number"),
    ("config.json", change_json(max_position_embeddings=-3), "max_position_embeddings: expected"),
    ("config.json", change_json(position_embedding_type="relative_key"), "relative_key"),
    ("config.json", change_json(is_decoder=True), "is_decoder"),
    ("tokenizer.json", write(b"{}"), "tokenizer's files cannot be read"),
    ("tokenizer_config.json", write(b"["), "tokenizer_config.json"),
    ("tokenizer_config.json", write(b"[]"), "found a list"),
    ("modules.json", write(b"{"), "modules.json: expected a list of modules"),
    ("modules.json", write(b'{"a": 1}'), "modules.json: expected a list of modules"),
    ("modules.json", write(b'[{"path": ""}]'), "modules.json: expected a list of modules"),
    ("sentence_bert_config.json", write(b'{"max_seq_length": "10"}'), "found '10'"),
    ("sentence_bert_config.json", write(b'{"max_seq_length": 2}'), "at least 3 tokens"),
    ("config_sentence_transformers.json", write(b'{"default_prompt_name": "query"}'), "'query'"),
    ("pytorch_model.bin", bare_pickle(b""), "cannot be read"),
    ("pytorch_model.bin", bare_pickle(b"garbage"), "pytorch_model.bin"),
    ("pytorch_model.bin", pickled([1, 2]), "expected a dict of tensors, found a list"),
    ("pytorch_model.bin", pickled({"epoch": 3}), "found 'epoch', a int"),
    ("pytorch_model.bin", pickled({7: torch.zeros(2)}), "names of tensors, found the key 7"),
    ("pytorch_model.bin", pickled({"a.b": torch.eye(2).to_sparse()}), "'a.b': expected a dense"),
    ("pytorch_model.bin", pickled({"a.b": torch.zeros(2, device="meta")}), "without values (meta)"),
]


@pytest.mark.parametrize(("name", "change", "expected"), CASES)
def test_a_malformed_file_is_told_in_one_line(bert_original, tmp_path, name, change, expected):
    folder = tmp_path / "encoder"
    shutil.copytree(bert_original, folder)
    change(folder / name)
    with pytest.raises(EncoderError) as error:
        BiEncoder.from_pretrained(folder)
    message = str(error.value)
    assert expected in message
    assert message.startswith(str(folder))
    assert "\n" not in message


@pytest.mark.parametrize("content", [{}, []])
def test_a_malformed_index_of_shards_is_told_in_one_line(bert_original, tmp_path, content):
    folder = tmp_path / "encoder"
    shutil.copytree(bert_original, folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))
    with pytest.raises(EncoderError, match="cannot be read"):
        BiEncoder.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.txt", b"\xff\xfe"),
        ("vocab.json", b"{"),
        ("merges.txt", b"#version: 0.2\nnonsense of three words\n"),
    ],
)
def test_a_malformed_vocabulary_is_told_in_one_line(request, tmp_path, name, content):
    family = "bert" if name == "vocab.txt" else "roberta"
    folder = tmp_path / "encoder"
    shutil.copytree(request.getfixturevalue(f"{family}_original"), folder)
    (folder / "tokenizer.json").unlink(missing_ok=True)
    (folder / name).write_bytes(content)
    with pytest.raises(EncoderError) as error:
        BiEncoder.from_pretrained(folder)
    assert "\n" not in str(error.value)
