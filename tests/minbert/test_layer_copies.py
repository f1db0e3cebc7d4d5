"""Layers of single tasks in place of shared ones, and branches that share their first layers."""

import pytest
import torch

from minbert.adapters import AdaptedEncoder
from minbert.layer_copies import BranchedEncoder, LayerCopies, shared_layers
from minbert.precision import in_bfloat16


def branch(encoder, *places, seed=None):
    """Return copies of some layers, with other weights for a `seed`."""
    copies = LayerCopies(encoder.config, places)
    copies.start_from(encoder)
    if seed is not None:
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in copies.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return AdaptedEncoder(encoder, copies.eval())


def test_copies_start_as_the_layers_that_they_replace(encoder, batch):
    adapted = branch(encoder, 1)
    assert torch.equal(adapted(batch), encoder(batch))
    assert adapted.layers[0] is encoder.layers[0]
    own, shared = adapted.layers[1].state_dict(), encoder.layers[1].state_dict()
    assert all(torch.equal(own[name], value) for name, value in shared.items())
    assert all(own[name].data_ptr() != value.data_ptr() for name, value in shared.items())


def test_copies_keep_the_kernel_of_the_linear_layers(encoder):
    encoder.use_linear("onednn")
    assert branch(encoder, 0).layers[0].up.kernel == "onednn"


def test_copies_are_used_in_place_of_the_shared_layers(encoder, batch):
    adapted = branch(encoder, 1, seed=1)
    before = adapted(batch)
    with torch.no_grad():
        encoder.layers[1].up.weight.zero_()
    assert torch.equal(adapted(batch), before)
    assert not torch.equal(encoder(batch), before)


def test_merged_copies_compute_the_same(encoder, batch):
    adapted = branch(encoder, 0, 1, seed=1)
    merged = adapted.merged()
    assert torch.equal(merged(batch), adapted(batch))
    assert not torch.equal(merged(batch), encoder(batch))
    assert torch.equal(adapted.first_layers(1).merged()(batch), next(adapted.states(batch)))


def test_copies_are_converted_with_their_encoder(encoder, batch):
    adapted = branch(encoder, 1, seed=1)
    half = in_bfloat16(adapted)
    assert {one.dtype for one in half.parameters()} == {torch.bfloat16}
    assert {one.dtype for one in adapted.parameters()} == {torch.float32}
    assert torch.equal(half(batch), in_bfloat16(adapted.merged())(batch))


@pytest.mark.parametrize("convert", [lambda one: one, in_bfloat16], ids=["fp32", "bf16"])
def test_branches_compute_their_shared_layers_once_and_the_same(encoder, batch, convert):
    several = [convert(one) for one in (encoder, branch(encoder, 1, seed=1), branch(encoder, 1))]
    expected = torch.cat([one(batch) for one in several], 1)
    calls = []
    first_layers = {id(one.layers[0]): one.layers[0] for one in several}
    for layer in first_layers.values():
        layer.register_forward_hook(lambda *_: calls.append(1))
    assert torch.equal(BranchedEncoder(several)(batch), expected)
    assert len(calls) == 1


def test_encoders_that_end_before_their_branches_are_the_same(encoder, batch):
    several = [one.first_layers(1) for one in (encoder, branch(encoder, 1, seed=1))]
    assert shared_layers(several) == 1
    assert torch.equal(BranchedEncoder(several)(batch), torch.cat([several[0](batch)] * 2, 1))


def test_the_first_changed_layer_ends_the_shared_part(encoder):
    whole, top, bottom = encoder, branch(encoder, 1), branch(encoder, 0)
    assert shared_layers([whole, top]) == 1
    assert shared_layers([top, bottom]) == 0
    merged = branch(encoder, 1).merged()
    assert shared_layers([merged, merged]) == 2
    assert shared_layers([whole, merged]) == 0, "a copy has other weights"
    with pytest.raises(ValueError, match="expected the same first layer in all"):
        BranchedEncoder([top, bottom])
