"""Checkpoints of all layouts give the same weights."""

import peer_models
import pytest
import torch
from safetensors.torch import load_file, save_file

from minbert import BiEncoder
from minbert.weights import to_checkpoint


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


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.model.", "0.auto_model."])
def test_prefixes_of_other_models_and_their_heads_are_left_out(bert_folder, prefix):
    plain = weights(bert_folder)
    heads = {f"{name}.weight": torch.zeros(2) for name in ("classifier", "qa_outputs", "mlp.dense")}
    change(bert_folder, {f"{prefix}{name}": one for name, one in (plain | heads).items()})
    model = assert_loads_as(bert_folder, plain)
    assert {f"{prefix}{name}" for name in heads} <= set(model.skipped_tensors)


def test_old_names_gamma_and_beta_are_read_and_position_ids_left_out(bert_folder):
    plain = weights(bert_folder)
    old = {
        f"bert.{k}".replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): v
        for k, v in plain.items()
    }
    change(bert_folder, old | {"bert.embeddings.position_ids": torch.arange(40)[None]})
    model = assert_loads_as(bert_folder, plain)
    assert "bert.embeddings.position_ids" in model.skipped_tensors


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_precision_checkpoint_becomes_float32(bert_folder, dtype):
    half = {name: tensor.to(dtype) for name, tensor in weights(bert_folder).items()}
    change(bert_folder, half)
    assert_loads_as(bert_folder, half)


def test_a_pickled_checkpoint_is_read(bert_folder):
    plain = weights(bert_folder)
    (bert_folder / "model.safetensors").unlink()
    torch.save(plain, bert_folder / "pytorch_model.bin")
    assert_loads_as(bert_folder, plain)


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
