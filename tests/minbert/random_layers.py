"""Small encoders with large random weights, for comparisons of layers."""

from dataclasses import replace

import torch

from minbert.batching import Batch
from minbert.config import EncoderConfig
from minbert.encoder import random_encoder

CONFIG = EncoderConfig(
    vocab_size=50,
    hidden_size=48,
    num_layers=2,
    num_heads=3,
    intermediate_size=80,
    max_positions=200,
)


def batch_of(lengths):
    """Return a batch of random tokens."""
    ids = torch.randint(
        CONFIG.vocab_size, (sum(lengths),), generator=torch.Generator().manual_seed(0)
    )
    return Batch(torch.tensor(lengths), ids)


def encoder_of(**changes):
    """Return an encoder in training mode; large random weights let gradients reach every part."""
    encoder = random_encoder(replace(CONFIG, **changes))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return encoder


def distance(found, wanted):
    """Return the norm of the difference as a share of the wanted norm."""
    return float((found - wanted).norm() / wanted.norm())
