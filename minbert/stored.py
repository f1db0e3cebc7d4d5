"""Encoders of either architecture, to and from a folder."""

from __future__ import annotations

from pathlib import Path

import torch

from common.errors import EncoderError
from common.json_files import read_json, write_json
from minbert import bilstm
from minbert.bilstm import BiLSTM, BiLSTMConfig
from minbert.config import EncoderConfig, config_from_transformers, config_to_transformers
from minbert.encoder import Encoder
from minbert.tensor_files import check_weights, save_tensors
from minbert.weights import load_transformer, read_checkpoint, save_transformer

AnyEncoder = Encoder | BiLSTM
AnyConfig = EncoderConfig | BiLSTMConfig


def read_config(folder: Path) -> AnyConfig:
    """The shape of the encoder in a folder; EncoderError names what is wrong in which file."""
    file = folder / "config.json"
    content = read_json(file)
    try:
        if content.get("model_type") == bilstm.MODEL_TYPE:
            return bilstm.config_from_json(content)
        return config_from_transformers(content)
    except EncoderError as error:
        raise EncoderError(f"{file}: {error}") from error


def load_encoder(folder: Path, config: AnyConfig) -> tuple[AnyEncoder, list[str]]:
    """An encoder with the weights of `folder`, and the extras left out."""
    if isinstance(config, EncoderConfig):
        return load_transformer(folder, config)
    source, tensors = read_checkpoint(folder)
    with torch.device("meta"):
        encoder = BiLSTM(config)
    for name, expected in encoder.state_dict().items():
        if name not in tensors:
            raise EncoderError(f"{source}: expected a tensor {name!r}, found none")
        if tensors[name].shape != expected.shape:
            raise EncoderError(
                f"{source}: {name!r}: expected shape {tuple(expected.shape)}, "
                f"found {tuple(tensors[name].shape)}"
            )
    for name in tensors:
        if name not in encoder.state_dict():
            raise EncoderError(
                f"{source}: found a tensor that this encoder does not have: {name!r}"
            )
    check_weights(tensors, source)
    encoder = BiLSTM(config)  # PyTorch keeps an LSTM's weights in lists that `assign` would miss
    encoder.load_state_dict(tensors)
    return encoder, []


def save_encoder(encoder: AnyEncoder, folder: Path) -> None:
    """Write `config.json` and `model.safetensors`; a transformer's as transformers opens them."""
    if isinstance(encoder, Encoder):
        write_json(folder / "config.json", config_to_transformers(encoder.config))
        save_transformer(encoder, folder)
        return
    write_json(folder / "config.json", encoder.config.to_json())
    tensors = {n: value.detach().cpu().contiguous() for n, value in encoder.state_dict().items()}
    save_tensors(tensors, folder / "model.safetensors", {"format": "pt"})
