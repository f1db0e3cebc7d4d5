"""Adapters: LoRA and projected attention against plain sums, and LoRA merged into the weights."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tolerances import (
    assert_near,
    assert_near_in_norm,
    encoder_terms,
    gradient_terms,
    rounding,
)

from common.errors import EncoderError
from minbert.adapters import PLAIN, QKV, AdaptedEncoder, LowRankAdapter, ProjectedAttention
from minbert.attention import AttentionLayout
from minbert.batching import pack
from minbert.bi_encoder import BiEncoder
from minbert.precision import autocast, in_bfloat16

TARGETS = (*QKV, "output", "up", "down")
RANK, ALPHA = 3, 6.0
TEXTS = ["A cat sleeps.", "The sun is up, and it will not go down.", "no"]


def low_rank(encoder, layers=(0, 1), targets=("query", "value"), trained=True):
    torch.manual_seed(1)
    adapter = LowRankAdapter(encoder.config, layers, targets, RANK, ALPHA)
    return as_trained(adapter) if trained else adapter


def projected(encoder, layers=(0, 1), shared=True, trained=True):
    torch.manual_seed(1)
    adapter = ProjectedAttention(encoder.config, layers, 2 * encoder.config.num_heads, shared)
    return as_trained(adapter) if trained else adapter


def as_trained(adapter):
    """Return the adapter with random weights where it has zeros."""
    with torch.no_grad():
        for parameter in adapter.parameters():
            if not parameter.any():
                parameter.normal_()
    return adapter.eval()


def assert_exact(found, expected, terms):
    """Both agree up to the rounding of float64."""
    found, expected = found.detach().numpy(), expected.detach().numpy()
    atol = rounding(terms, torch.float64) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def outer_sum(b, a):
    """B A as an explicit sum of outer products, in float64."""
    found = np.zeros((len(b), a.shape[1]))
    for r in range(a.shape[0]):
        for i in range(len(b)):
            for j in range(a.shape[1]):
                found[i, j] += b[i, r] * a[r, j]
    return ALPHA / RANK * found


def changed_weights(encoder, adapter):
    """The encoder's weights plus (alpha / r) B A, from the parameters of the adapter by name."""
    weights = {name: value.clone() for name, value in encoder.state_dict().items()}
    values = {name: value.detach().numpy() for name, value in adapter.named_parameters()}
    width = encoder.config.hidden_size
    for name in values:
        if not name.endswith(".a"):
            continue
        _, layer, *place, _ = name.split(".")
        delta = torch.from_numpy(outer_sum(values[name[:-1] + "b"], values[name]))
        module = place[0] if place[0] in ("up", "down") else f"attention.{place[0]}"
        weight = weights[f"layers.{layer}.{module}.weight"]
        if len(place) > 1:  # one of query, key and value
            begin = QKV.index(place[1]) * width
            weight = weight[begin : begin + width]
        weight += delta
    return weights


@pytest.mark.numeric
@pytest.mark.parametrize("targets", [("query", "value"), ("key",), TARGETS])
def test_lora_is_an_encoder_with_changed_weights_forward_and_backward(encoder, batch, targets):
    """In float64: states, and by the chain rule dA = s B^T dW and dB = s dW A^T."""
    encoder = encoder.double()
    adapter = low_rank(encoder, targets=targets).double()
    found = encoder(batch, adapter)
    plain = copy.deepcopy(encoder)
    plain.load_state_dict(changed_weights(encoder, adapter))
    expected = plain(batch)
    assert (found - encoder(batch)).abs().max() > 1e-3
    terms = gradient_terms(encoder.config, int(batch.lengths.sum()))
    assert_exact(found, expected, terms)
    direction = torch.randn(found.shape, dtype=torch.float64)
    (found * direction).sum().backward()
    (expected * direction).sum().backward()
    ours, theirs = dict(encoder.named_parameters()), dict(plain.named_parameters())
    for name, parameter in ours.items():
        if parameter.grad is not None:  # W x and B A x have the same gradient of x
            assert_exact(parameter.grad, theirs[name].grad, terms)
    width, checked = encoder.config.hidden_size, 0
    for layer, parts in adapter.by_layer():
        for name, part in parts.items():
            several = part.items() if name == "qkv" else [(name, part)]
            for target, one in several:
                module = name if name in ("up", "down") else f"attention.{name}"
                whole = theirs[f"layers.{layer}.{module}.weight"].grad
                begin = QKV.index(target) * width if name == "qkv" else 0
                rows = whole[begin : begin + one.b.shape[0]]
                scale = ALPHA / RANK
                assert_exact(one.a.grad, scale * one.b.detach().T @ rows, terms)
                assert_exact(one.b.grad, scale * rows @ one.a.detach().T, terms)
                checked += 1
    assert checked == 2 * len(targets)


@pytest.mark.parametrize("make", [low_rank, projected])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_new_adapter_changes_no_bit(encoder, batch, make, precision):
    adapter = make(encoder, trained=False)
    with autocast(torch.device("cpu"), precision):
        assert torch.equal(encoder(batch, adapter), encoder(batch))


def test_lora_draws_no_dropout(encoder, batch):
    encoder.train()
    plain = encoder(batch)
    with encoder.stream.replay(encoder.stream.passes):
        adapted = encoder(batch, low_rank(encoder, trained=False))  # in layers that are not fused
    assert_near(adapted, plain, encoder_terms(encoder.config, batch.longest))


def naive_attention(x, weights, heads):
    """Multi-head attention of one sequence x (T, r) with stacked weights (3r, r), row by row."""
    query, key, value = (x @ w.T for w in np.split(weights, 3))
    width, found = x.shape[1] // heads, np.zeros_like(x)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for t in range(len(x)):
            scores = np.array([query[t, part] @ k[part] for k in key]) / np.sqrt(width)
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            found[t, part] = sum(s * v[part] for s, v in zip(shares, value, strict=True))
    return found


@pytest.mark.numeric
@pytest.mark.parametrize("shared", [True, False])
def test_projected_attention_is_added_before_the_last_norm(encoder, batch, shared):
    """In float64, layer by layer: LN(h' + FFN(h') + V_D MH(V_E h))."""
    encoder = encoder.double()
    adapter = projected(encoder, (1,), shared).double()
    weights = {name: value.detach().numpy() for name, value in adapter.named_parameters()}
    place = "shared" if shared else "1"
    layout = AttentionLayout(batch, encoder.config.num_heads)
    first, second = encoder.layers
    with torch.no_grad():
        hidden = first(encoder.embeddings(batch), layout)
        low = hidden.numpy() @ weights[f"down.{place}"].T  # (T, r)
        parts = np.split(low, np.cumsum(batch.lengths.numpy())[:-1])
        heads = encoder.config.num_heads
        context = np.concatenate([naive_attention(p, weights["qkv.1"], heads) for p in parts])
        after = second.attention_norm(hidden + second.attention(hidden, layout, PLAIN))
        wide = second.down(F.gelu(second.up(after)))
        extra = torch.from_numpy(context @ weights[f"up.{place}"].T)
        expected = second.output_norm(after + wide + extra)
        found = encoder(batch, adapter)
    assert_exact(found, expected, encoder_terms(encoder.config, encoder.config.max_tokens))
    assert (found - encoder(batch)).abs().max() > 1e-3


def test_the_layers_of_projected_attention_share_their_projections(encoder):
    width, rank = encoder.config.hidden_size, 2 * encoder.config.num_heads
    for shared, places in ((True, 1), (False, 2)):
        count = sum(p.numel() for p in projected(encoder, shared=shared).parameters())
        assert count == places * 2 * width * rank + 2 * 3 * rank**2


@pytest.mark.numeric
@pytest.mark.parametrize("targets", [("query", "value"), TARGETS])
def test_a_merged_encoder_has_the_same_states_and_leaves_the_encoder(encoder, batch, targets):
    adapter = low_rank(encoder, targets=targets)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    merged = AdaptedEncoder(encoder, adapter).merged()
    terms = encoder_terms(encoder.config, encoder.config.max_tokens)
    with torch.no_grad():
        assert_near(merged(batch), encoder(batch, adapter), terms)
        assert (merged(batch) - encoder(batch)).abs().max() > 1e-3
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name])
        assert merged.state_dict()[name].data_ptr() != value.data_ptr()


def test_projected_attention_is_not_merged(encoder):
    with pytest.raises(EncoderError, match="expected an adapter that can be merged"):
        AdaptedEncoder(encoder, projected(encoder)).merged()


def test_only_the_chosen_layers_are_changed(encoder):
    for adapter in (low_rank(encoder, (1,)), projected(encoder, (1,))):
        first, second = adapter.additions(2)
        assert first == type(first)()
        assert second != type(second)()
    merged, before = as_trained(low_rank(encoder, (0,), ("down",))), encoder.state_dict()
    merged = AdaptedEncoder(encoder, merged).merged().state_dict()
    changed = [name for name in before if not torch.equal(merged[name], before[name])]
    assert changed == ["layers.0.down.weight"]


def test_the_weights_of_lora_do_not_depend_on_the_order_of_the_targets(encoder):
    """Nor on the hash of their names, which differs between processes."""
    one, other = (
        low_rank(encoder, targets=order, trained=False) for order in (TARGETS, TARGETS[::-1])
    )
    names = [name for name, _ in one.named_parameters()]
    order = ["qkv.query", "qkv.key", "qkv.value", "output", "up", "down"]
    assert names == [f"layers.{n}.{name}.{ab}" for n in (0, 1) for name in order for ab in "ab"]
    for name, value in other.state_dict().items():
        assert torch.equal(value, one.state_dict()[name])


@pytest.mark.parametrize("make", [low_rank, projected])
def test_a_bi_encoder_may_have_an_adapted_encoder(tiny, encoder, make, tmp_path):
    adapted = AdaptedEncoder(encoder, make(encoder))
    model = BiEncoder(adapted, tiny.tokenizer)
    found = model.encode(TEXTS)
    batch = pack([tiny.tokenizer(TEXTS)], np.arange(len(TEXTS)))
    terms = encoder_terms(encoder.config, encoder.config.max_tokens)
    assert_near(found, model.embed(batch), terms)
    assert np.abs(found - tiny.encode(TEXTS)).max() > 1e-3
    half = model.encode(TEXTS, precision="bf16")
    np.testing.assert_allclose(half, found, atol=0.05 * np.abs(found).max())
    assert in_bfloat16(adapted).adapter is adapted.adapter
    if make is low_rank:
        model.save_pretrained(tmp_path)
        assert_near(BiEncoder.from_pretrained(tmp_path).encode(TEXTS), found, terms)


@pytest.mark.numeric
def test_the_kernels_of_bfloat16_agree_on_a_layer_without_bias():
    from minbert.linear import linear, rounded

    torch.manual_seed(0)
    x, weight = torch.randn(7, 16), torch.randn(5, 16)
    plain = linear(x, weight, None, "mkl")
    assert_near(plain, x @ weight.T, 16)
    wide = x.bfloat16().float() @ weight.bfloat16().float().T
    assert torch.equal(rounded(x, weight, None), wide.bfloat16())


@pytest.mark.numeric
def test_gradients_of_float32_are_those_of_float64(encoder, batch):
    found = {}
    for dtype in (torch.float32, torch.float64):
        model, adapter = copy.deepcopy(encoder).to(dtype), low_rank(encoder).to(dtype)
        model(batch, adapter).pow(3).sum().backward()
        found[dtype] = torch.cat([p.grad.flatten().double() for p in adapter.parameters()])
    tokens = int(batch.lengths.sum())
    terms = gradient_terms(encoder.config, tokens)
    assert_near_in_norm(found[torch.float32], found[torch.float64], terms)
