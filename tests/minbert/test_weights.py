"""Checkpoints of all layouts give the same weights."""

import argparse
import random
from types import SimpleNamespace

import numpy as np
import peer_models
import pytest
import torch
from safetensors.torch import load_file, save_file

from common.errors import EncoderError
from minbert import BiEncoder
from minbert.weights import OTHER_NAMES, to_checkpoint


def weights(folder):
    return load_file(folder / "model.safetensors")


def change(folder, tensors):
    save_file(tensors, folder / "model.safetensors")


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
        ("BertForSequenceClassification", "bert.", "bert.pooler.dense.weight"),
        ("BertForQuestionAnswering", "bert.", "qa_outputs.weight"),
        ("RobertaForTokenClassification", "roberta.", "classifier.weight"),
        ("XLMRobertaForMaskedLM", "roberta.", "lm_head.layer_norm.bias"),
    ],
)
def test_a_checkpoint_with_a_head_loses_prefix_and_head(tmp_path, kind, prefix, extra):
    peer_models.save(tmp_path, kind)
    found = weights(tmp_path)
    assert any(name.startswith(prefix) for name in found)
    model = assert_loads_as(tmp_path, {k.removeprefix(prefix): v for k, v in found.items()})
    assert extra in model.skipped_tensors


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.model.", "0.auto_model.", "net.encoder."])
def test_prefixes_of_other_models_and_their_heads_are_left_out(bert_folder, prefix):
    plain = weights(bert_folder)
    heads = {f"{prefix}mlp.dense.weight": torch.zeros(2), "scorer.weight": torch.zeros(2)}
    ids = {f"{prefix}embeddings.position_ids": torch.arange(40)[None]}
    change(bert_folder, heads | ids | {f"{prefix}{name}": one for name, one in plain.items()})
    model = assert_loads_as(bert_folder, plain)
    pooler = {f"{prefix}pooler.dense.{kind}" for kind in ("weight", "bias")}
    assert {*heads, *pooler} == {*model.skipped_tensors}


def renamed(tensors, names):
    for other, ours in names.items():
        tensors = {name.replace(ours, other): one for name, one in tensors.items()}
    return {f"bert.{name}": one for name, one in tensors.items()}


STANFORD = dict([*OTHER_NAMES.items()][2:])
STATE = {  # what the course's code keeps beside the weights
    "args": argparse.Namespace(lr=1e-5),
    "model_config": SimpleNamespace(hidden_size=32),
    "system_rng": random.getstate(),
    "numpy_rng": np.random.get_state(),
    "torch_rng": torch.random.get_rng_state(),
}


@pytest.mark.parametrize(
    "content",
    [
        lambda plain: plain,
        lambda plain: renamed(plain, dict([*OTHER_NAMES.items()][:2])),
        lambda plain: {"state_dict": {f"model.{k}": v for k, v in plain.items()}, "epoch": 3},
        lambda plain: {"model": {f"bert.{k}": v for k, v in plain.items()}, **STATE},
        lambda plain: {"model": renamed(plain, STANFORD), **STATE},
    ],
    ids=["plain", "gamma and beta", "state_dict", "model", "the course's own names"],
)
def test_pickled_checkpoints_are_read(bert_folder, content):
    plain = weights(bert_folder)
    (bert_folder / "model.safetensors").unlink()
    torch.save(content(plain), bert_folder / "pytorch_model.bin")
    assert_loads_as(bert_folder, plain)


@pytest.mark.parametrize(("kind", "same"), [("BertModel", True), ("RobertaModel", False)])
def test_a_config_without_model_type_is_that_of_bert(tmp_path, edit_json, kind, same):
    peer_models.save(tmp_path, kind)
    edit_json(tmp_path / "config.json", model_type=None)
    if same:
        assert_loads_as(tmp_path, weights(tmp_path))
    else:
        with pytest.raises(EncoderError, match="model_type: expected one of bert, roberta"):
            BiEncoder.from_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_precision_checkpoint_becomes_float32(bert_folder, dtype):
    half = {name: tensor.to(dtype) for name, tensor in weights(bert_folder).items()}
    change(bert_folder, half)
    assert_loads_as(bert_folder, half)


def test_a_checkpoint_in_shards_is_read(bert_folder):
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
