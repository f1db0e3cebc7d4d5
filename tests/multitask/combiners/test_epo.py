"""EPO: golden steps, the toy front, and what is refused."""

import numpy as np
import pytest
from golden_files import golden

from multitask.combiners import epo_weights
from multitask.combiners.epo import epo_solution, non_uniformity

pytestmark = pytest.mark.numeric

STEPS = golden("epo_step")["cases"]
TOYS = golden("epo_toy")["cases"]
SOLVED = [case for case in STEPS if not case["expected"]["status"].startswith("must_raise")]
GIVEN = ("gram", "losses", "preference", "eps_mu", "relax")
REFUSED = [case for case in STEPS if case["expected"]["status"] == "must_raise"]


@pytest.mark.parametrize("case", SOLVED, ids=lambda case: case["id"])
def test_epo_equals_the_golden_steps(case):
    expected, inputs = case["expected"], case["inputs"]
    found = epo_weights(*(inputs[key] for key in GIVEN))
    if expected.get("mu") is not None:
        mu = non_uniformity(np.array(inputs["losses"]), np.array(inputs["preference"]))
        assert mu == pytest.approx(expected["mu"], rel=1e-9, abs=1e-12)
    if expected["status"] == "infeasible":
        _, status = epo_solution(inputs["gram"], inputs["losses"], inputs["preference"])
        assert status == "descent, relaxed"
    assert found.dtype == np.float64
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    if expected["status"] == "converged":
        return
    if expected.get("unique") is False:
        slope = np.array(expected["gram_times_a"])
        if expected["mode"] != "balance":
            slope = np.sum(inputs["gram"], axis=0)
        assert slope @ found == pytest.approx(expected["lp_value"], abs=1e-6)
        return
    alpha = expected["alpha"] or expected["recommended_fallback_alpha"]
    np.testing.assert_allclose(found, alpha, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        *((tuple(c["inputs"][k] for k in GIVEN), "expected none below zero") for c in REFUSED),
        ((np.eye(2), [1.0, 1.0], [0.0, 1.0]), "expected positive"),
        ((np.eye(2), [1.0, 1.0], [np.nan, 1.0]), "expected positive"),
        ((np.eye(2), [np.inf, 1], [0.5, 0.5]), "expected finite numbers"),
        ((np.full((2, 2), np.nan), [1, 1], [0.5, 0.5]), "expected finite numbers"),
        ((np.eye(3), [1.0, 1.0], [0.5, 0.5]), "expected a gram matrix"),
    ],
)
def test_invalid_arguments_of_epo_are_refused(arguments, expected):
    with pytest.raises(ValueError, match=expected):
        epo_weights(*arguments)


def toy(x):
    """Two losses of Fonseca and Fleming and their gradients."""
    ends = np.stack([np.full(len(x), s / np.sqrt(len(x))) for s in (1, -1)])
    decay = np.exp(-((x - ends) ** 2).sum(1))
    return 1 - decay, 2 * decay[:, None] * (x - ends)


THIRDS = [1 / 3] * 3
# Solved in exact fractions: v, the effect of the adjustment, is 0 where rounding gives it a sign.
EXACT_ZEROS = [
    # v = (2.51, -1.06, 0): the third objective must not worsen.
    (([[25, -10, 0], [-10, 9, -4], [0, -4, 4]], [3, 2, 2], THIRDS), [0.284955, 0.357523, 0.357523]),
    # v = (0, -0.30, -2.09): none may worsen.
    (([[2, 3, -1], [3, 10, 1], [-1, 1, 6]], [0.5, 3, 0.5], THIRDS), [0.5, 0.5, 0]),
    # 0.1 x 3 and 0.3 x 1 are equally large: neither may worsen.
    (([[42, -12, -32], [-12, 18, 22], [-32, 22, 50]], [3, 1, 0.2], [0.1, 0.3, 0.6]), [0.6, 0.4, 0]),
    # On the ray but for the last bit: v is 0, and only the descent counts.
    (
        (
            [[2.8920999999999997, 1.0161], [1.0161, 5.2056]],
            [2.08565790487107, 4.757596718122224],
            [0.6952242726928103, 0.30477572730718977],
        ),
        [0, 1],
    ),
]


@pytest.mark.parametrize(("arguments", "alpha"), EXACT_ZEROS)
def test_rounding_decides_no_constraint(arguments, alpha):
    np.testing.assert_allclose(epo_weights(*arguments), alpha, atol=1e-6)


@pytest.mark.parametrize("case", TOYS, ids=lambda case: case["id"])
def test_epo_finds_the_exact_point_of_the_toy_front(case):
    inputs, expected = case["inputs"], case["expected"]
    x, wish, first = np.array(inputs["x0"]), np.array(inputs["preference"]), []
    for _ in range(inputs["max_iters"]):
        losses, gradients = toy(x)
        first.append(losses)
        alpha = epo_weights(gradients @ gradients.T, losses, wish, inputs["eps_mu"])
        direction = alpha @ gradients
        if np.abs(direction).max() < inputs["grad_tol"]:
            break
        mu = non_uniformity(losses, wish)
        x = x - 10 * max(mu, 0.1) * inputs["step_size"] * direction
    np.testing.assert_allclose(first[:5], expected["first5_losses"], atol=1e-6)
    found = toy(x)[0]
    np.testing.assert_allclose(found, expected["final_losses_reference"], atol=1e-3)
    np.testing.assert_allclose(
        found, expected["exact_epo_losses"], atol=expected["accept_atol_to_exact"]
    )


def test_balance_does_not_worsen_the_largest_scaled_loss():
    """Balance: (C alpha)_j >= 0 for the largest r_j l_j; the adjustment is orthogonal to l."""
    random = np.random.default_rng(0)
    for _ in range(200):
        m = int(random.integers(2, 5))
        gradients = random.normal(size=(m, 6)) * 10 ** random.uniform(-4, 4)
        losses, wish = random.uniform(0.1, 3, m), random.dirichlet(np.ones(m)) + 0.01
        gram = gradients @ gradients.T
        alpha, status = epo_solution(gram, losses, wish)
        assert status in ("balance", "descent", "descent, relaxed")
        if status == "balance":
            gains = gram @ alpha / np.diag(gram).mean()
            assert gains[(wish * losses).argmax()] >= -1e-9
        else:
            assert (gram @ alpha >= -1e-9 * np.diag(gram).mean()).all()
