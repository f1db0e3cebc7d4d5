"""Last layers of single tasks in place of shared ones."""

import copy

import numpy as np
import torch

from minbert.batching import pack
from minbert.layer_copies import branch, copied_layers


def test_copies_replace_the_last_layers_and_start_as_they_are(tiny):
    texts = ["A cat sleeps.", "The sun is up, and it will not go down.", "no"]
    batch = pack([tiny.tokenizer(texts)], np.arange(3))
    encoder = copy.deepcopy(tiny.encoder).eval()
    own, before = branch(encoder, copied_layers(encoder, 1)), encoder(batch)
    assert torch.equal(own(batch), before)
    assert own.layers[0] is encoder.layers[0]
    assert own.embeddings is encoder.embeddings
    with torch.no_grad():
        encoder.layers[1].up.weight.zero_()
    assert torch.equal(own(batch), before)
    assert not torch.equal(encoder(batch), before)
