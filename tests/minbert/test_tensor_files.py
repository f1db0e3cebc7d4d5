"""Weights that are not numbers, or are there twice, are refused with file and tensor."""

import json
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

from common.errors import EncoderError
from minbert import BiEncoder
from minbert.tensor_files import check_weights, read_tensors
from minbert.words import build_bilstm

NAME = "encoder.layer.1.output.dense.weight"


def refusal(folder):
    with pytest.raises(EncoderError) as caught:
        BiEncoder.from_pretrained(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def repeat_in_header(file, name):
    """A second entry of this name: of two, the library takes the last."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    text = json.dumps({"first": header[name], **header}).replace("first", name, 1).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_weight_that_is_not_finite_is_named(bert_folder, number, pickled):
    file = bert_folder / "model.safetensors"
    tensors = load_file(file)
    tensors[NAME][3, 5] = float(number)
    if pickled:
        file.unlink()
        file = bert_folder / "pytorch_model.bin"
        torch.save(tensors, file)
    else:
        save_file(tensors, file)
    assert refusal(bert_folder) == f"{file}: {NAME!r}: expected finite numbers, found {number}"


def test_a_weight_that_float32_does_not_hold_is_named(bert_folder):
    file = bert_folder / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {NAME: torch.full(tensors[NAME].shape, 1e300, dtype=torch.float64)}, file)
    assert f"{NAME!r}: expected finite numbers, found inf" in refusal(bert_folder)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.complex64])
def test_a_weight_of_another_type_is_named(bert_folder, dtype):
    file = bert_folder / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {NAME: tensors[NAME].to(dtype)}, file)
    found = str(dtype).removeprefix("torch.")
    expected = f"{file}: {NAME!r}: expected floating-point numbers, found {found}"
    assert refusal(bert_folder) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(float("nan"), "finite numbers, found nan"), (7, "floating-point numbers, found int64")],
)
def test_a_weight_of_a_bilstm_is_named(tmp_path, value, expected):
    build_bilstm(tmp_path / "bilstm", ["a cat", "a dog"], units=4, embedding_size=3)
    file = tmp_path / "bilstm" / "model.safetensors"
    tensors = load_file(file)
    name = "embeddings.word.weight"
    save_file(tensors | {name: torch.full(tensors[name].shape, value)}, file)
    assert f"{file}: {name!r}: expected {expected}" in refusal(file.parent)


def test_the_largest_finite_numbers_are_weights(tmp_path):
    largest = torch.finfo(torch.float32).max
    tensors = {"a": torch.tensor([largest, largest]), "b": torch.zeros(0)}
    check_weights(tensors, tmp_path)
    check_weights({"a": torch.full((9,), 60000.0).half()}, tmp_path)


def test_a_name_twice_in_a_header_is_refused(bert_folder):
    file = bert_folder / "model.safetensors"
    repeat_in_header(file, NAME)
    assert NAME in load_file(file)  # the library takes the last
    assert refusal(bert_folder) == f"{file}: {NAME!r}: expected one tensor of this name, found 2"


def test_a_name_in_two_shards_is_refused(bert_folder):
    tensors = load_file(bert_folder / "model.safetensors")
    (bert_folder / "model.safetensors").unlink()
    save_file(tensors, bert_folder / "a.safetensors")
    save_file({NAME: torch.zeros(32, 64)}, bert_folder / "b.safetensors")
    index = {"weight_map": dict.fromkeys(tensors, "a.safetensors") | {NAME: "b.safetensors"}}
    (bert_folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert f"b.safetensors: {NAME!r}: expected in one shard, found in two" in refusal(bert_folder)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (NAME, f"bert.{NAME}"),
        (NAME, f"roberta.{NAME}"),
        ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"),
    ],
)
def test_two_names_of_one_weight_are_refused(bert_folder, name, other):
    file = bert_folder / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {other: torch.zeros_like(tensors[name])}, file)
    message = refusal(bert_folder)
    assert message.startswith(f"{file}: {name!r}: expected one tensor, found ")
    assert repr(name) in message
    assert repr(other) in message


def test_an_empty_file_of_tensors_holds_none(tmp_path):
    save_file({}, tmp_path / "empty.safetensors")
    assert read_tensors(tmp_path / "empty.safetensors") == {}
