"""SMART: golden divergences, and golden steps of noise for single texts and pairs."""

import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases
from loss_cases import tensor

from losses import adversarial_noise, squared_difference, symmetric_kl
from losses.smart import GUARD

CLOSE = {"rtol": 1e-8, "atol": 1e-10}


def kl(found, clean):
    return F.kl_div(found.log_softmax(-1), clean.softmax(-1), reduction="batchmean")


DIVERGENCES = {
    "kl_batchmean": kl,
    "sym_kl_batchmean": symmetric_kl,
    "mse_mean": squared_difference,
    "mse_sum": lambda found, clean: F.mse_loss(found, clean, reduction="sum"),
}


def settings(inputs):
    projected = inputs.get("mode") == "projected"
    return {
        "variant": "projected" if projected else "normalised",
        "steps": inputs["num_steps"],
        "step_size": inputs["step_size"],
        **({"radius": inputs["radius"]} if projected else {"guard": inputs["epsilon"]}),
    }


@pytest.mark.numeric
@golden_cases("smart_divergence")
def test_values_and_gradients_are_the_golden_ones(case):
    p, q = (tensor(case["inputs"][key]).requires_grad_() for key in ("logits_p", "logits_q"))
    expected = case["expected"]
    loss = symmetric_kl(p, q)
    assert loss.item() == pytest.approx(expected["sym_kl_batchmean"], rel=1e-9, abs=1e-10)
    loss.backward()
    for side, key in ((p, "grad_p_batchmean_full"), (q, "grad_q_batchmean_full")):
        torch.testing.assert_close(side.grad, tensor(expected[key]), rtol=1e-9, atol=1e-10)
    difference = squared_difference(p, q).item()
    assert difference == pytest.approx(expected["mse_mean"], rel=1e-9, abs=1e-10)


@pytest.mark.numeric
def test_equal_logits_give_exactly_zero_and_far_ones_stay_finite():
    logits = torch.randn(7, 5) * 30
    assert symmetric_kl(logits, logits.clone()).item() == 0
    p = torch.tensor([[200.0, -200.0]], requires_grad=True)
    loss = symmetric_kl(p, -p.detach())
    loss.backward()
    assert loss.item() == pytest.approx(800)
    assert p.grad.isfinite().all()


@golden_cases("smart_inner", lambda inputs: inputs["mode"] != "mtdnn")
def test_noise_of_one_text_is_the_golden_one(case):
    """mt-dnn's own divergences are other ones; its steps are those of `normalised`."""
    inputs, expected = case["inputs"], case["expected"]
    embed, weight, bias = (tensor(inputs[key]) for key in ("embed", "W", "bias"))
    count, length, width = embed.shape
    owner = torch.arange(count).repeat_interleave(length)  # packed: examples one after the other

    def predict(noise):
        return (embed + noise.view(embed.shape)).mean(1) @ weight.T + bias

    clean = predict(torch.zeros_like(embed))
    inner = DIVERGENCES[inputs["inner_loss"].split(" ")[0]]
    if inner is symmetric_kl and inputs["mode"] == "reference_normalised":
        inner = kl  # each direction detaches its target there: the gradient of one is left
    start = tensor(inputs["noise_standard_normal"]).view(-1, width) * inputs["noise_var"]
    noise = adversarial_noise(lambda n: inner(predict(n), clean), start, owner, **settings(inputs))
    torch.testing.assert_close(noise.view(embed.shape), tensor(expected["final_noise"]), **CLOSE)
    if inputs["outer_loss"] in DIVERGENCES:
        value = DIVERGENCES[inputs["outer_loss"]](predict(noise), clean)
        torch.testing.assert_close(value, tensor(expected["regulariser"]), **CLOSE)


@golden_cases("smart_biencoder")
def test_noise_of_both_towers_is_the_golden_one(case):
    inputs, expected = case["inputs"], case["expected"]
    embed = [tensor(inputs[f"embed_{side}"]) for side in (1, 2)]
    sizes = [e.shape[0] * e.shape[1] for e in embed]

    def predict(noise):
        parts = noise.split(sizes)
        u, v = ((e + n.view(e.shape)).mean(1) for e, n in zip(embed, parts, strict=True))
        return inputs["scale"] * F.cosine_similarity(u, v)

    width = embed[0].shape[-1]
    start = torch.cat(
        [tensor(inputs[f"noise_standard_normal_{side}"]).view(-1, width) for side in (1, 2)]
    )
    clean = predict(torch.zeros_like(start))
    noise = adversarial_noise(
        lambda n: squared_difference(predict(n), clean),
        start * inputs["noise_var"],
        torch.zeros(len(start), dtype=torch.long),
        **settings(inputs),
    )
    for side, part, e in zip((1, 2), noise.split(sizes), embed, strict=True):
        torch.testing.assert_close(
            part.view(e.shape), tensor(expected[f"final_noise_{side}"]), **CLOSE
        )
    value = squared_difference(predict(noise), clean)
    torch.testing.assert_close(value, tensor(expected["regulariser"]), **CLOSE)


@pytest.mark.parametrize("step_size", [0.05, 0.3])
def test_one_step_in_l2_is_the_plain_formula(step_size):
    """One step of 0.05 stays inside the ball of 0.2 around zero, one of 0.3 is projected."""
    torch.manual_seed(0)
    owner, weight = torch.tensor([0, 0, 1, 1, 1, 0]), torch.randn(6, 4, dtype=torch.float64)
    start = torch.randn(6, 4, dtype=torch.float64) * 1e-3

    def divergence(noise):
        return (weight * noise).square().sum()

    gradient = 2 * weight.square() * start
    ball = {"step_size": step_size, "radius": 0.2, "norm": "l2"}
    noise = adversarial_noise(divergence, start, owner, variant="projected", **ball)
    for example in (0, 1):
        rows = owner == example
        moved = start[rows] + step_size * gradient[rows] / gradient[rows].norm()
        moved = moved * min(1.0, 0.2 / moved.norm().item())
        torch.testing.assert_close(noise[rows], moved)
    noise = adversarial_noise(divergence, start, owner, norm="l2", step_size=step_size)
    moved = start + step_size * gradient
    torch.testing.assert_close(noise, moved / (moved.norm(dim=-1, keepdim=True) + GUARD))


def test_a_gradient_of_zero_leaves_the_noise_finite():
    start = torch.randn(3, 4)
    owner = torch.zeros(3, dtype=torch.long)
    for variant in ("normalised", "projected"):
        noise = adversarial_noise(lambda n: 0 * n.sum(), start, owner, variant=variant)
        assert noise.isfinite().all()
