"""Hidden states equal those of `transformers` for random BERT and RoBERTa encoders."""

import copy
from dataclasses import replace

import numpy as np
import peer_models
import pytest
import torch
from tolerances import gradient_terms, rounding

from minbert import BiEncoder
from minbert import linear as kernels
from minbert.batching import bucketed_batches, pack
from minbert.config import EncoderConfig, config_from_transformers, config_to_transformers
from minbert.encoder import random_encoder
from minbert.precision import autocast
from minbert.weights import to_checkpoint

TOLERANCE = 1e-5  # what the README says; `rounding` of the longest sums would allow more
WIDE = {"hidden_size": 96, "num_attention_heads": 8, "intermediate_size": 200}
BERTS = [
    {"layer_norm_eps": 1e-12, "hidden_act": "gelu"},
    {"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_act": "gelu_new"},
    {"num_hidden_layers": 4, "layer_norm_eps": 1e-5, "hidden_act": "relu"} | WIDE,
    {"num_attention_heads": 16, "hidden_act": "gelu_pytorch_tanh", "type_vocab_size": 1},
    {"max_position_embeddings": 200, "layer_norm_eps": 1e-2, "pad_token_id": 3},
]
ROBERTAS = [
    {"layer_norm_eps": 1e-5, "hidden_act": "gelu"},
    {"num_hidden_layers": 4, "layer_norm_eps": 1e-12, "type_vocab_size": 1} | WIDE,
    {"max_position_embeddings": 200, "hidden_act": "relu"},
    {"max_position_embeddings": 50, "pad_token_id": 7, "hidden_act": "gelu_new"},
]
CASES = [("BertModel", changes) for changes in BERTS]
CASES += [("RobertaModel", changes) for changes in ROBERTAS] + [("XLMRobertaModel", ROBERTAS[0])]


@pytest.fixture(params=[kernels.uses_onednn(torch.float32), False], ids=["default", "mkl"])
def product(request, monkeypatch):
    """Both products in float32."""
    monkeypatch.setattr(kernels, "uses_onednn", lambda dtype: request.param)


def load(folder):
    return BiEncoder.from_pretrained(folder).eval()


def all_rows(tokens):
    return pack([tokens], torch.arange(len(tokens)).numpy())


@torch.no_grad()
def peer_states(peer, **inputs):
    """transformers' hidden states of the real tokens, in packed order: (T, H)."""
    if peer.config.type_vocab_size == 1:
        inputs["token_type_ids"] = torch.zeros_like(inputs["attention_mask"])
    states = peer(**inputs).last_hidden_state
    return states[inputs["attention_mask"].bool()]


@pytest.mark.numeric
@pytest.mark.usefixtures("product")
@pytest.mark.parametrize(("kind", "changes"), CASES)
@torch.no_grad()
def test_hidden_states_equal_those_of_transformers(tmp_path, kind, changes):
    peer = peer_models.save(tmp_path, kind, **changes)
    model = load(tmp_path)
    tokens = model.tokenizer(peer_models.SENTENCES)
    used = 0 if kind == "BertModel" else peer.config.pad_token_id + 1
    if peer.config.max_position_embeddings <= 50:
        assert tokens.lengths.max() == peer.config.max_position_embeddings - used
    assert tokens.lengths.min() == 2
    ours = model.encoder(all_rows(tokens))
    theirs = peer_states(peer, **peer_models.padded(tokens, peer.config.pad_token_id))
    assert ours.std() > 0.5
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=0)


@torch.no_grad()
def test_two_texts_in_a_sequence_carry_segments(tmp_path):
    peer = peer_models.save(tmp_path, "BertModel")
    model = load(tmp_path)
    tokens = model.tokenizer(peer_models.SENTENCES, peer_models.SENTENCES[::-1])
    inputs = peer_models.padded(tokens)
    assert inputs["token_type_ids"].sum() > 0
    ours = model.encoder(all_rows(tokens))
    torch.testing.assert_close(ours, peer_states(peer, **inputs), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("kind", ["BertModel", "RobertaModel"])
@torch.no_grad()
def test_noise_is_added_to_the_output_of_the_embedding_module(tmp_path, kind):
    """As in mt-dnn."""
    peer = peer_models.save(tmp_path, kind)
    model = load(tmp_path)
    tokens = model.tokenizer(peer_models.SENTENCES)
    inputs = peer_models.padded(tokens, peer.config.pad_token_id)
    noise = torch.randn(*inputs["input_ids"].shape, 32, generator=torch.Generator().manual_seed(0))
    packed = all_rows(tokens)
    here = noise[inputs["attention_mask"].bool()]
    noisy = replace(packed, noise=here)
    peer.embeddings.register_forward_hook(lambda module, given, output: output + noise)
    theirs = peer_states(peer, **inputs)
    torch.testing.assert_close(model.encoder(noisy), theirs, atol=TOLERANCE, rtol=0)


def gradients(model, batches, precision="fp32"):
    """Gradients of a loss over all real tokens, under the names of transformers."""
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            hidden = model.encoder(batch)
        hidden.float().square().mul(torch.arange(32) / 32).sum().backward()
    encoder = copy.deepcopy(model.encoder)
    with torch.no_grad():
        for ours, with_gradient in zip(
            encoder.parameters(), model.encoder.parameters(), strict=True
        ):
            ours.copy_(with_gradient.grad)
    return to_checkpoint(encoder)


def peer_gradients(peer, inputs):
    states = peer(**inputs).last_hidden_state[inputs["attention_mask"].bool()]
    states.square().mul(torch.arange(32) / 32).sum().backward()
    return {name: p.grad for name, p in peer.named_parameters() if p.grad is not None}


def difference(ours, theirs):
    """Norm of the whole difference over the norm of the whole gradient."""
    assert theirs.keys() <= ours.keys()
    total = sum(grad.double().square().sum() for grad in theirs.values())
    apart = sum((ours[n].double() - g.double()).square().sum() for n, g in theirs.items())
    return (apart / total).sqrt().item()


@pytest.mark.numeric
@pytest.mark.usefixtures("product")
@pytest.mark.parametrize("kind", ["BertModel", "RobertaModel"])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_gradients_equal_those_of_transformers(tmp_path, kind, batch_size):
    """Packed and bucketed batches, added up, against one padded batch."""
    peer = peer_models.save(tmp_path, kind)
    model = load(tmp_path)
    tokens = model.tokenizer(peer_models.SENTENCES)
    theirs = peer_gradients(peer, peer_models.padded(tokens, peer.config.pad_token_id))
    rows = bucketed_batches(tokens.lengths, batch_size, np.random.default_rng(0))
    ours = gradients(model, [pack([tokens], r) for r in rows])
    terms = gradient_terms(model.encoder.config, int(tokens.lengths.sum()))
    assert difference(ours, theirs) <= rounding(terms)


@pytest.mark.numeric
def test_bfloat16_is_near_float32_of_transformers(tmp_path):
    """It keeps 8 bits: 2e-2 of the gradient's norm; 5e-2 where the states' deviation is about 1."""
    peer = peer_models.save(tmp_path, "BertModel")
    model = load(tmp_path)
    tokens = model.tokenizer(peer_models.SENTENCES)
    inputs, batch = peer_models.padded(tokens), all_rows(tokens)
    theirs = peer_gradients(peer, inputs)
    assert 1e-4 < difference(gradients(model, [batch], "bf16"), theirs) <= 2e-2
    with torch.no_grad(), autocast(torch.device("cpu"), "bf16"):
        ours = model.encoder(batch)
    assert (ours.float() - peer_states(peer, **inputs)).square().mean().sqrt() <= 5e-2


def test_the_random_start_is_that_of_bert_and_seeded():
    config = EncoderConfig(vocab_size=500, hidden_size=64, num_layers=1, num_heads=2)
    state = random_encoder(config, seed=1).state_dict()
    again, other = random_encoder(config, 1).state_dict(), random_encoder(config, 2).state_dict()
    assert all(torch.equal(state[name], again[name]) for name in state)
    assert not torch.equal(state["layers.0.up.weight"], other["layers.0.up.weight"])
    for name, value in state.items():
        if name.endswith("bias"):
            assert not value.any(), name
        elif "norm" in name:
            assert (value == 1).all(), name
        else:
            assert value.std().item() == pytest.approx(0.02, rel=0.1), name


KEYS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "hidden_act"),
    *("intermediate_size", "max_position_embeddings", "type_vocab_size", "layer_norm_eps"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "pad_token_id"),
)


@pytest.mark.parametrize("name", ["BertConfig", "RobertaConfig"])
def test_absent_keys_of_a_configuration_have_the_defaults_of_transformers(name):
    import transformers

    peer = getattr(transformers, name)()
    written = config_to_transformers(config_from_transformers({"model_type": peer.model_type}))
    assert {key: written[key] for key in KEYS} == {key: getattr(peer, key) for key in KEYS}
