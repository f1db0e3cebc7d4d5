"""`config.json` is read and written; unsupported models are refused."""

import pytest

from common.errors import EncoderError
from minbert.config import EncoderConfig, config_from_transformers, config_to_transformers

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


def test_roberta_counts_positions_after_its_padding_id():
    bert = EncoderConfig(max_positions=512, pad_id=0)
    roberta = EncoderConfig(model_type="roberta", max_positions=514, pad_id=1)
    assert (bert.position_offset, bert.max_tokens, bert.family) == (0, 512, "bert")
    assert (roberta.position_offset, roberta.max_tokens, roberta.family) == (2, 512, "roberta")
    assert EncoderConfig(model_type="xlm-roberta").family == "roberta"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "t5"}, "model_type: expected one of bert, roberta, xlm-roberta, found"),
        ({"hidden_dropout_prob": 1.5}, "Expected `float` < 1.0 - at `$.hidden_dropout_prob`"),
        ({"position_embedding_type": "relative_key"}, "expected 'absolute', found 'relative_key'"),
        ({"is_decoder": True}, "is_decoder: expected false"),
        ({"hidden_act": "silu"}, "Invalid enum value 'silu' - at `$.hidden_act`"),
        ({"num_attention_heads": 5}, "hidden_size: expected a multiple of 5 attention heads"),
    ],
)
def test_unsupported_models_are_refused(changes, message):
    with pytest.raises(EncoderError) as caught:
        config_from_transformers({"model_type": "bert"} | SHAPE | changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
