"""Last layers of single tasks in place of shared ones."""

import torch

from minbert.layer_copies import branch, copied_layers


def branched(encoder, count, seed=None):
    """Return an encoder with copies of the last layers, with other weights for a `seed`."""
    layers = copied_layers(encoder, count).eval()
    if seed is not None:
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in layers.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return branch(encoder, layers)


def test_copies_start_as_the_layers_that_they_replace(encoder, batch):
    own = branched(encoder, 1)
    assert torch.equal(own(batch), encoder(batch))
    assert own.layers[0] is encoder.layers[0]
    assert own.embeddings is encoder.embeddings
    copies, shared = own.layers[1].state_dict(), encoder.layers[1].state_dict()
    assert all(torch.equal(copies[name], value) for name, value in shared.items())
    assert all(copies[name].data_ptr() != value.data_ptr() for name, value in shared.items())


def test_copies_are_used_in_place_of_the_shared_layers(encoder, batch):
    own = branched(encoder, 1, seed=1)
    before = own(batch)
    with torch.no_grad():
        encoder.layers[1].up.weight.zero_()
    assert torch.equal(own(batch), before)
    assert not torch.equal(encoder(batch), before)
