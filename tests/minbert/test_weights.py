"""Checkpoints of every layout are read alike; a wrong one is refused in one line."""

import json

import peer_models
import pytest
import torch
from safetensors.torch import load_file, save_file

from common.errors import EncoderError
from minbert import BiEncoder
from minbert.weights import to_checkpoint


def expect_error(folder, *parts):
    with pytest.raises(EncoderError) as caught:
        BiEncoder.from_pretrained(folder)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
    return message


def weights(folder):
    return load_file(folder / "model.safetensors")


def change(folder, tensors):
    save_file(tensors, folder / "model.safetensors")


def only_pickled(folder, content):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")


def assert_loads_as(folder, expected):
    """Our encoder of `folder` holds `expected`, names as transformers' bare model has them."""
    model = BiEncoder.from_pretrained(folder)
    for name, tensor in to_checkpoint(model.encoder).items():
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, expected[name].float(), atol=0, rtol=0)
    assert all(parameter.requires_grad for parameter in model.parameters())
    return model


def test_every_tensor_of_a_plain_folder_is_read_and_the_pooler_listed(bert_folder):
    model = assert_loads_as(bert_folder, weights(bert_folder))
    assert sorted(model.skipped_tensors) == ["pooler.dense.bias", "pooler.dense.weight"]


@pytest.mark.parametrize(
    ("kind", "prefix", "extra"),
    [
        ("BertForMaskedLM", "bert.", "cls.predictions.bias"),
        ("BertForPreTraining", "bert.", "cls.seq_relationship.weight"),
        ("RobertaForMaskedLM", "roberta.", "lm_head.dense.weight"),
        ("XLMRobertaForMaskedLM", "roberta.", "lm_head.layer_norm.bias"),
    ],
)
def test_a_pretraining_checkpoint_loses_prefix_and_head(tmp_path, kind, prefix, extra):
    peer_models.save(tmp_path, kind)
    found = weights(tmp_path)
    assert any(name.startswith(prefix) for name in found)
    model = assert_loads_as(tmp_path, {k.removeprefix(prefix): v for k, v in found.items()})
    assert extra in model.skipped_tensors


def test_old_names_gamma_and_beta_and_position_ids(bert_folder):
    plain = weights(bert_folder)
    old = {
        f"bert.{k}".replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): v
        for k, v in plain.items()
    }
    change(bert_folder, old | {"bert.embeddings.position_ids": torch.arange(40)[None]})
    model = assert_loads_as(bert_folder, plain)
    assert "bert.embeddings.position_ids" in model.skipped_tensors


def test_a_pickled_checkpoint(bert_folder):
    plain = weights(bert_folder)
    only_pickled(bert_folder, plain)
    assert_loads_as(bert_folder, plain)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_precision_checkpoint_becomes_float32(bert_folder, dtype):
    half = {name: tensor.to(dtype) for name, tensor in weights(bert_folder).items()}
    change(bert_folder, half)
    assert_loads_as(bert_folder, half)


def test_a_checkpoint_in_shards(bert_folder):
    plain = weights(bert_folder)
    (bert_folder / "model.safetensors").unlink()
    peer_models.make("BertModel").save_pretrained(bert_folder, max_shard_size="50KB")
    assert len(list(bert_folder.glob("model-*.safetensors"))) > 1
    assert_loads_as(bert_folder, plain)


def test_weights_do_not_depend_on_the_file_once_loaded(bert_folder):
    model = BiEncoder.from_pretrained(bert_folder)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    file = bert_folder / "model.safetensors"
    with open(file, "r+b") as opened:
        opened.write(b"\0" * file.stat().st_size)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_missing_tensor_is_named(bert_folder):
    tensors = weights(bert_folder)
    del tensors["encoder.layer.1.attention.self.key.bias"]
    change(bert_folder, tensors)
    expect_error(
        bert_folder, "model.safetensors", "encoder.layer.1.attention.self.key.bias", "found none"
    )


def test_an_unexpected_tensor_is_named(bert_folder):
    change(bert_folder, weights(bert_folder) | {"classifier.weight": torch.zeros(2, 32)})
    expect_error(bert_folder, "model.safetensors", "classifier.weight", "(2, 32)")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("encoder.layer.0.attention.self.value.weight", (32, 31)),
        ("encoder.layer.0.output.dense.bias", (1, 32)),
        ("embeddings.position_embeddings.weight", (41, 32)),
    ],
)
def test_a_wrong_shape_is_named(bert_folder, name, shape):
    change(bert_folder, weights(bert_folder) | {name: torch.zeros(shape)})
    expect_error(bert_folder, "model.safetensors", name, f"found {shape}")


@pytest.mark.parametrize("layers", [1, 3])
def test_another_number_of_layers_in_the_config_is_refused(bert_folder, edit_json, layers):
    edit_json(bert_folder / "config.json", num_hidden_layers=layers)
    expect_error(bert_folder, f"encoder.layer.{min(layers, 2)}.")


@pytest.mark.parametrize("kept", [0, 20, 5000])
def test_a_truncated_safetensors_file(bert_folder, kept):
    file = bert_folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    expect_error(bert_folder, str(bert_folder), "cannot be read")


def test_a_missing_shard(bert_folder):
    (bert_folder / "model.safetensors").unlink()
    index = {"weight_map": {"embeddings.LayerNorm.bias": "model-00001-of-00002.safetensors"}}
    (bert_folder / "model.safetensors.index.json").write_text(json.dumps(index))
    expect_error(bert_folder, "model-00001-of-00002.safetensors")


def test_a_truncated_pickle(bert_folder):
    only_pickled(bert_folder, weights(bert_folder))
    file = bert_folder / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:5000])
    expect_error(bert_folder, "cannot be read")


def test_code_in_a_pickle_is_refused_and_not_run(bert_folder, tmp_path):
    marker = tmp_path / "the code ran"
    only_pickled(bert_folder, {"embeddings.LayerNorm.bias": peer_models.Mine(marker)})
    expect_error(bert_folder, "would run code")
    assert not marker.exists()
    torch.load(bert_folder / "pytorch_model.bin", weights_only=False)
    assert marker.exists()  # the stand-in is a real one


def test_no_weights_at_all(bert_folder):
    (bert_folder / "model.safetensors").unlink()
    expect_error(bert_folder, "expected model.safetensors or pytorch_model.bin, found neither")
