"""Invalid encoder folders cause one-line errors that name the file."""

import json

import peer_models
import pytest
import torch
from safetensors.torch import load_file, save_file

from common.errors import EncoderError
from minbert import BiEncoder

NAME = "encoder.layer.1.output.dense.weight"
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


def modules(*kinds):
    several = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in kinds]
    return json.dumps(several).encode()


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("config.json", b"{", "config.json: cannot be read as JSON"),
        ("config.json", settings(num_hidden_layers=1), "does not have: 'encoder.layer.1."),
        ("config.json", settings(model_type="t5"), "expected one of bert, roberta, xlm-roberta"),
        ("config.json", settings(position_embedding_type="relative_key"), "'absolute', found"),
        ("config.json", settings(is_decoder=True), "is_decoder: expected false"),
        ("tokenizer_config.json", settings(truncation_side="left"), "must be right, not left"),
        ("vocab.txt", None, "the folder needs tokenizer.json or vocab.txt"),
        ("modules.json", modules("Transformer", "Dense"), "found Transformer, Dense"),
        ("config_sentence_transformers.json", b'{"default_prompt_name": "query"}', "'query'"),
        (WEIGHTS, lambda content: content[:5000], f"{WEIGHTS}: the weights cannot be read"),
        (f"{WEIGHTS}.index.json", b'{"weight_map": {"a": "gone"}}', "the weights cannot be read"),
    ],
)
def test_a_malformed_file_is_refused(bert_folder, name, change, expected):
    file = bert_folder / name
    content = file.read_bytes() if file.exists() else b""
    if name.endswith("index.json"):
        (bert_folder / WEIGHTS).unlink()
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change if isinstance(change, bytes) else change(content))
    assert expected in refusal(bert_folder)


def changed(change):
    return lambda tensors: tensors | {NAME: change(tensors[NAME])}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed(lambda one: one * float("nan")), f"{NAME!r}: expected finite numbers, found nan"),
        (changed(lambda one: one[:, 1:]), "expected shape (32, 48), found (32, 47)"),
        (lambda tensors: {k: v for k, v in tensors.items() if k != NAME}, f"{NAME!r} is missing"),
    ],
)
def test_a_wrong_tensor_is_refused_by_its_name(bert_folder, change, expected):
    file = bert_folder / WEIGHTS
    tensors = {name: tensor.contiguous() for name, tensor in change(load_file(file)).items()}
    save_file(tensors, file)
    message = refusal(bert_folder)
    assert message.startswith(f"{file.name}: ")
    assert expected in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda content: content["model"]["vocab"].update(cat=5000), "found a tokenizer with 5000"),
        (lambda content: content.update(post_processor=None), "that adds special tokens"),
    ],
)
def test_a_tokenizer_that_would_fail_later_is_refused(bert_folder, change, expected, capfd):
    BiEncoder.from_pretrained(bert_folder).tokenizer.save(bert_folder)
    content = json.loads((bert_folder / "tokenizer.json").read_text())
    change(content)
    (bert_folder / "tokenizer.json").write_text(json.dumps(content))
    assert expected in refusal(bert_folder)
    assert capfd.readouterr().err == ""


def test_code_in_a_pickle_is_refused_and_not_run(bert_folder, tmp_path):
    marker = tmp_path / "the code ran"
    (bert_folder / WEIGHTS).unlink()
    torch.save({"a": peer_models.Mine(marker)}, bert_folder / "pytorch_model.bin")
    assert "would run code" in refusal(bert_folder)
    assert not marker.exists()
    torch.load(bert_folder / "pytorch_model.bin", weights_only=False)
    assert marker.exists()  # the stand-in is a real one
