"""`config.json` is read and written as transformers does."""

import pytest

from minbert.config import config_from_transformers, config_to_transformers

PEERS = {"bert": "BertConfig", "roberta": "RobertaConfig", "xlm-roberta": "XLMRobertaConfig"}
SHAPE = {
    "vocab_size": 99,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 50,
    "max_position_embeddings": 77,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-6,
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0.3,
    "attention_probs_dropout_prob": 0.2,
    "pad_token_id": 4,
}


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_absent_keys_have_the_defaults_of_transformers(model_type):
    import transformers

    peer = getattr(transformers, PEERS[model_type])()
    written = config_to_transformers(config_from_transformers({"model_type": model_type}))
    assert {key: written[key] for key in SHAPE} == {key: getattr(peer, key) for key in SHAPE}


@pytest.mark.parametrize("model_type", PEERS)
def test_transformers_reads_written_configurations(model_type):
    import transformers

    ours = config_from_transformers({"model_type": model_type} | SHAPE)
    written = config_to_transformers(ours)
    peer = transformers.AutoConfig.for_model(**written)
    assert type(peer).__name__ == PEERS[model_type]
    assert config_from_transformers(peer.to_dict()) == ours
