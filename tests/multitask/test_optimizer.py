"""Parameter groups, and the learning rate's way up and down."""

import numpy as np
import pytest
import torch
from golden_files import golden

from minbert.words import build_bilstm
from multitask.optimizer import AdamW, Optimizer


def test_encoder_and_heads_have_their_own_rates_and_vectors_do_not_decay(make_trainer):
    trainer = make_trainer(optimizer=AdamW(lr=1e-4, head_lr=1e-2, weight_decay=0.3))
    groups = trainer.optimizer.param_groups
    assert [(g["lr"], g["weight_decay"]) for g in groups] == [
        (1e-4, 0.3),
        (1e-4, 0.0),
        (1e-2, 0.3),
        (1e-2, 0.0),
    ]
    for group in groups:
        assert all((p.ndim > 1) == (group["weight_decay"] > 0) for p in group["params"])
        assert group["fused"]
    held = sum(p.numel() for g in groups for p in g["params"])
    assert held == sum(p.numel() for p in trainer.model.parameters())
    assert trainer.peak_rates == [1e-4, 1e-4, 1e-2, 1e-2]


def tiny(folder):
    return "tiny"


def bilstm(folder):
    texts = ["a cat sleeps", "two dogs bark", "a bird sings", "nobody sleeps"]
    build_bilstm(folder, texts, units=8, num_layers=2, embedding_size=12)
    return str(folder)


@pytest.mark.parametrize("make", [tiny, bilstm])
def test_layer_decay_gives_each_parameter_the_rate_of_its_layer(make_trainer, tmp_path, make):
    encoder = make(tmp_path / "encoder")
    trainer = make_trainer(encoder=encoder, optimizer=AdamW(lr=1e-3, head_lr=1e-2, layer_decay=0.5))
    groups = trainer.optimizer.param_groups
    rates = {id(p): g["lr"] for g in groups for p in g["params"]}
    sections, encoder = trainer.model.sections(), trainer.model.bi_encoder
    assert list(sections) == ["embeddings", "layer 1", "layer 2"]
    assert sum(map(len, sections.values())) == len(list(encoder.parameters())), "all have a row"
    expected = {"embeddings.": 0.25e-3, "layers.0.": 0.5e-3, "layers.1.": 1e-3}
    for name, parameter in trainer.model.named_parameters():
        inside = name.removeprefix("bi_encoder.encoder.")
        rate = (
            1e-2 if inside == name else next(r for p, r in expected.items() if inside.startswith(p))
        )
        assert rates.pop(id(parameter)) == rate, name
    assert not rates
    for group in groups:
        assert all((p.ndim > 1) == (group["weight_decay"] > 0) for p in group["params"])


def test_layer_decay_gives_copies_the_rate_of_their_layer(make_trainer):
    optimizer = AdamW(lr=1e-3, head_lr=1e-2, layer_decay=0.5)
    trainer = make_trainer(branch={"sts": "top-2"}, optimizer=optimizer)
    found = {id(p): g["lr"] for g in trainer.optimizer.param_groups for p in g["params"]}
    for layer, rate in zip(trainer.model.branches["sts"], (0.5e-3, 1e-3), strict=True):
        assert {found[id(p)] for p in layer.parameters()} == {rate}


@pytest.mark.parametrize(("schedule", "last"), [("linear", 0), ("constant", 1)])
def test_the_rate_increases_during_warm_up_and_then_falls_or_stays(schedule, last):
    optimizer = AdamW(warmup=0.1, lr_schedule=schedule)
    factors = [optimizer.factor(step, 100) for step in range(101)]
    np.testing.assert_allclose(factors[:10], np.arange(1, 11) / 10)
    np.testing.assert_allclose(factors[10:], np.linspace(1, last, 91))


@pytest.mark.parametrize("schedule", ["linear", "constant"])
@pytest.mark.parametrize("total", [1, 2, 3])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_even_the_shortest_run_takes_a_step(schedule, total, warmup):
    optimizer = AdamW(warmup=warmup, lr_schedule=schedule)
    assert all(0 < optimizer.factor(step, total) <= 1 for step in range(total))


@pytest.mark.parametrize(
    "case",
    [c for c in golden("adamw")["cases"] if c["inputs"]["correct_bias"]],
    ids=lambda case: case["id"],
)
def test_pytorchs_adamw_is_the_starter_codes_but_decays_before_the_step(case):
    given = case["inputs"]
    parameter = torch.nn.Parameter(torch.tensor(given["param"], dtype=torch.float64))
    names = ("lr", "betas", "eps", "weight_decay")
    optimizer = torch.optim.AdamW([parameter], fused=True, **{name: given[name] for name in names})
    for gradient in given["gradients"]:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    expected = case["expected"]["trap_decay_before_update_final"]
    # Its eps is added to the corrected root, the starter code's to the uncorrected one.
    np.testing.assert_allclose(parameter.detach(), expected, rtol=1e-3)
    after = case["expected"]["params_after_each_step"][-1]
    differs = given["weight_decay"] > 0 and np.any(given["gradients"])
    assert np.allclose(parameter.detach(), after, rtol=1e-3) != differs


class PartOfModel(Optimizer, name="part"):
    """Train everything but the encoder's layers."""

    def build(self, model):
        layers = {id(one) for one in model.encoder.layers.parameters()}
        rest = [one for one in model.parameters() if id(one) not in layers]
        return torch.optim.SGD([{"params": rest, "lr": 0.1}])


def test_gradients_of_what_an_optimizer_leaves_out_are_forgotten(make_trainer):
    trainer = make_trainer(optimizer=PartOfModel(warmup=0.0, lr_schedule="constant"))
    trainer.train_step(trainer.plan.steps(1)[0])
    assert {one.grad for one in trainer.model.parameters()} == {None}
