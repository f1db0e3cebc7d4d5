"""Invalid encoder folders cause one-line errors that name the file."""

import json

import peer_models
import pytest
import torch
from safetensors.torch import load_file, save_file

from common.errors import EncoderError
from minbert import BiEncoder

NAME = "encoder.layer.1.output.dense.weight"
NORM = "embeddings.LayerNorm"
WEIGHTS = "model.safetensors"


def refusal(folder):
    with pytest.raises(EncoderError) as caught:
        BiEncoder.from_pretrained(folder)
    message = str(caught.value)
    assert message.startswith(str(folder))
    assert "\n" not in message
    return message.removeprefix(f"{folder}/")


def settings(**changes):
    return lambda content: json.dumps(json.loads(content or "{}") | changes).encode()


FILES = [
    ("config.json", b"{", "config.json: expected a JSON object"),
    ("config.json", settings(hidden_size="abc"), "got `str` - at `$.hidden_size`"),
    ("config.json", settings(num_hidden_layers=1), "does not have: 'encoder.layer.1."),
    ("tokenizer.json", b"{}", "tokenizer's files cannot be read"),
    ("modules.json", b"{", "modules.json: expected a list of modules"),
    ("sentence_bert_config.json", b'{"max_seq_length": "10"}', "found '10'"),
    ("config_sentence_transformers.json", b'{"default_prompt_name": "query"}', "'query'"),
    (
        "tokenizer_config.json",
        settings(truncation_side="left"),
        "truncation_side right, found left",
    ),
    (WEIGHTS, lambda content: content[:5000], f"{WEIGHTS}: the weights cannot be read"),
]


@pytest.mark.parametrize(("name", "change", "expected"), FILES)
def test_a_malformed_file_is_refused(bert_folder, name, change, expected):
    file = bert_folder / name
    content = file.read_bytes() if file.exists() else b""
    file.write_bytes(change if isinstance(change, bytes) else change(content))
    assert expected in refusal(bert_folder)


def changed(name, change):
    return lambda tensors: tensors | {name: change(tensors[name])}


def filled(value, dtype=None):
    return changed(NAME, lambda tensor: torch.full(tensor.shape, value, dtype=dtype))


def zeros(*shape):
    return lambda tensor: torch.zeros(shape)


def copied(name, other):
    return lambda tensors: tensors | {other: torch.zeros_like(tensors[name])}


TENSORS = [
    (filled(float("nan")), f"{NAME!r}: expected finite numbers, found nan"),
    (filled(1, torch.int8), f"{NAME!r}: expected floating-point numbers, found int8"),
    (lambda tensors: {k: v for k, v in tensors.items() if k != NAME}, f"{NAME!r}, found none"),
    (lambda tensors: tensors | {"other": torch.zeros(2, 3)}, "'other' (2, 3)"),
    (changed(NAME, zeros(32, 47)), "expected shape (32, 48), found (32, 47)"),
    (changed(f"{NORM}.bias", zeros(1, 32)), "expected shape (32,), found (1, 32)"),
    (copied(NAME, f"bert.{NAME}"), f"{NAME!r}: expected one tensor of this name, found two"),
    (copied(f"{NORM}.weight", f"{NORM}.gamma"), "expected one tensor of this name, found two"),
]


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize(("change", "expected"), TENSORS)
def test_a_wrong_tensor_is_refused_by_its_name(bert_folder, change, expected, pickled):
    file = bert_folder / WEIGHTS
    tensors = change(load_file(file))
    if pickled:
        file.unlink()
        torch.save(dict(sorted(tensors.items())), file := bert_folder / "pytorch_model.bin")
    else:
        save_file(tensors, file)
    message = refusal(bert_folder)
    assert message.startswith(f"{file.name}: ")
    assert expected in message


@pytest.mark.parametrize("index", [{"weight_map": {"a": "missing.safetensors"}}, []])
def test_malformed_shards_are_refused(bert_folder, index):
    (bert_folder / WEIGHTS).unlink()
    (bert_folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    assert "the weights cannot be read" in refusal(bert_folder)


@pytest.mark.parametrize("content", [[1, 2], {"epoch": 3}], ids=str)
def test_a_pickle_of_other_content_is_refused(bert_folder, content):
    (bert_folder / WEIGHTS).unlink()
    torch.save(content, bert_folder / "pytorch_model.bin")
    assert "expected a dict of tensors, found other content" in refusal(bert_folder)


def test_code_in_a_pickle_is_refused_and_not_run(bert_folder, tmp_path):
    marker = tmp_path / "the code ran"
    (bert_folder / WEIGHTS).unlink()
    torch.save({"a": peer_models.Mine(marker)}, bert_folder / "pytorch_model.bin")
    assert "would run code" in refusal(bert_folder)
    assert not marker.exists()
    torch.load(bert_folder / "pytorch_model.bin", weights_only=False)
    assert marker.exists()  # the stand-in is a real one
