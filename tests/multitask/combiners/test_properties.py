"""What every combiner keeps, on hundreds of random Gram matrices of scales from 1e-8 to 1e8.

Tolerances: closed forms and small active-set solvers are right to 1e-9 of the largest weight;
CAGrad's cone program (Clarabel) to 1e-6. "Worse to first order" is measured in units of both
gradients' lengths; the quadratic programs leave 1e-5, for their ridge of 1e-12.
"""

import json

import numpy as np
import pytest
from plain import built_in

from multitask.combiners import Combiner
from multitask.combiners.base import WithPreference
from multitask.combiners.gramian import OfTorchJD
from multitask.combiners.loss_weights import LinearScalarization, RandomWeights, Uncertainty

COMBINERS = built_in(Combiner)
LOOSE = {"cagrad": 1e-6}
# Methods that promise an objective never gets worse to first order.
NEVER_WORSE = ("mgda", "upgrad", "dualproj", "fairgrad", "nash-mtl")
PREFERENCE = {2: (0.3, 0.7), 3: (0.2, 0.5, 0.3), 4: (0.1, 0.4, 0.2, 0.3)}


def problems(count, seed=0):
    """Gradients (m, 6) of very different sizes, losses, and a new order of the objectives."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        m = int(random.integers(2, 5))
        sizes = np.exp(random.normal(0, 1, (m, 1))) * 10 ** random.uniform(-4, 4)
        yield random.normal(size=(m, 6)) * sizes, random.uniform(0.1, 3, m), random.permutation(m)


def make(name, m, order=None, seed=0):
    order = range(m) if order is None else order
    wish = tuple(PREFERENCE[m][i] for i in order)
    settings = {"preference": wish} if issubclass(COMBINERS[name], WithPreference) else {}
    return COMBINERS[name](**settings).for_run(m, seed)


def tolerance(name):
    return LOOSE.get(name, 1e-9)


def number_of_problems(name):
    """Return a number of problems; TorchJD's solvers take up to 20 ms for each."""
    return 25 if name in LOOSE else 50 if issubclass(COMBINERS[name], OfTorchJD) else 200


@pytest.mark.parametrize("name", COMBINERS)
def test_weights_are_finite_and_do_not_depend_on_the_gradients_scale(name):
    for gradients, losses, _ in problems(number_of_problems(name)):
        m, gram = len(gradients), gradients @ gradients.T
        combined = make(name, m).combine(gram, losses, range(m))
        assert combined.weights.shape == (m,)
        assert np.isfinite(combined.weights).all()
        again = make(name, m).combine(gram * 1e6, losses, range(m))
        np.testing.assert_allclose(
            again.weights, combined.weights, atol=tolerance(name) * np.abs(combined.weights).max()
        )


RANDOM = {"pcgrad", "random-weights"}  # see its own tests


@pytest.mark.parametrize("name", sorted(set(COMBINERS) - RANDOM))
def test_renaming_the_objectives_renames_the_weights(name):
    for gradients, losses, order in problems(number_of_problems(name), seed=1):
        m, gram = len(gradients), gradients @ gradients.T
        weights = make(name, m).combine(gram, losses, range(m)).weights
        renamed = make(name, m, order).combine(gram[np.ix_(order, order)], losses[order], range(m))
        np.testing.assert_allclose(
            renamed.weights, weights[order], atol=tolerance(name) * np.abs(weights).max()
        )


@pytest.mark.parametrize("name", NEVER_WORSE)
def test_no_objective_gets_worse_to_first_order(name):
    for gradients, losses, _ in problems(200, seed=2):
        m = len(gradients)
        weights = make(name, m).combine(gradients @ gradients.T, losses, range(m)).weights
        step = weights @ gradients
        gains = gradients @ step / np.linalg.norm(gradients, axis=1)
        assert (gains >= -1e-5 * np.linalg.norm(step)).all()


@pytest.mark.parametrize(
    "name", sorted(set(COMBINERS) - {"uncertainty", "random-weights"})
)  # it starts at 1 for any losses
def test_equal_gradients_give_the_step_of_the_sum(name):
    gradients = np.tile([3.0, -1.0, 2.0], (3, 1))
    combiner = COMBINERS[name]().for_run(3)
    weights = combiner.combine(gradients @ gradients.T, np.ones(3), range(3)).weights
    expected = 3 * 1.4 if name == "cagrad" else 3  # CAGrad adds c = 0.4 of the length
    np.testing.assert_allclose(weights @ gradients, expected * gradients[0], rtol=1e-3)


@pytest.mark.parametrize("name", COMBINERS)
@pytest.mark.parametrize("zeros", [(1,), (0, 1, 2)])
def test_weights_are_finite_for_gradients_of_zero_and_one_for_one_objective(name, zeros):
    gradients = np.array([[1.0, -2.0, 0.5], [0.3, 1.0, 0.0], [-1.0, 1.0, 1.0]])
    gradients[list(zeros)] = 0
    combiner = COMBINERS[name]().for_run(3)
    combined = combiner.combine(gradients @ gradients.T, np.ones(3), range(3))
    assert np.isfinite(combined.weights).all()
    assert combined.status
    single = COMBINERS[name]().for_run(3)
    assert single.combine(np.array([[2.5]]), np.ones(1), [1]).weights == pytest.approx([1.0])


@pytest.mark.parametrize("name", COMBINERS)
def test_a_combiner_continues_from_its_state(name):
    random = np.random.default_rng(3)
    first, second = (COMBINERS[name]().for_run(4, seed) for seed in (1, 2))

    def steps(*combiners):
        for _ in range(5):
            drawn = np.sort(random.permutation(4)[: random.integers(1, 5)])
            gradients, losses = (
                random.normal(size=(len(drawn), 6)),
                random.uniform(1, 3, len(drawn)),
            )
            yield [
                each.combine(gradients @ gradients.T, losses, drawn).weights for each in combiners
            ]

    list(steps(first))
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for one, other in steps(first, second):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_linear_scalarization_is_the_weighted_sum(m):
    random = np.random.default_rng(m)
    weights = make("linear", m).combine(np.eye(m), np.ones(m), range(m)).weights
    np.testing.assert_allclose(weights, np.array(PREFERENCE[m]) * m)
    drawn = np.sort(random.permutation(m)[:2])
    found = make("linear", m).combine(np.eye(2), np.ones(2), drawn).weights
    np.testing.assert_allclose(found, weights[drawn])
    combiner = LinearScalarization(preference=(1.0, 0.0)).for_run(2)
    assert combiner.combine(np.eye(2), np.ones(2), (0, 1)).weights.tolist() == [2.0, 0.0]


def test_our_exact_mgda_is_never_longer_than_torchjds():
    torchjd = pytest.importorskip("torchjd.aggregation")
    torch = pytest.importorskip("torch")
    for gradients, losses, _ in problems(50, seed=5):
        m, gram = len(gradients), gradients @ gradients.T
        ours = make("mgda", m).combine(gram, losses, range(m)).weights / m
        peer = torchjd.MGDAWeighting()(torch.from_numpy(gram)).numpy()
        assert ours @ gram @ ours <= peer @ gram @ peer * (1 + 1e-9)
        assert ours.sum() == pytest.approx(1)
        assert (ours >= 0).all()


def test_uncertainty_brings_losses_of_any_size_to_one_weight():
    combiner = Uncertainty().for_run(2)
    losses = np.array([0.1, 3.0])
    for _ in range(1000):
        combiner.combine(np.eye(2), losses, (0, 1))
    weights = combiner.combine(np.eye(2), losses, (0, 1)).weights
    np.testing.assert_allclose(weights * losses, 1, rtol=1e-3)


def test_random_weights_are_positive_and_add_up_to_their_number():
    combiner = RandomWeights().for_run(3)
    found = [combiner.combine(None, np.ones(3), range(3)).weights for _ in range(2000)]
    assert (np.array(found) > 0).all()
    np.testing.assert_allclose(np.sum(found, 1), 3)
    np.testing.assert_allclose(np.mean(found, 0), 1, atol=0.1)
    assert len(combiner.combine(None, np.ones(2), (0, 2)).weights) == 2


class Broken(OfTorchJD):
    """A weighting whose solver fails."""

    def weigh(self, gram):
        raise RuntimeError("no")


def test_a_failed_solver_is_counted_and_the_step_is_the_sum():
    combined = Broken().combine(np.eye(2), np.ones(2), (0, 1))
    assert combined.weights.tolist() == [1.0, 1.0]
    assert combined.status == "summed, for RuntimeError"
