"""Combiners that need only the losses, and the plain sum."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Combiner, WithPreference
from multitask.sampling import generator

RATE = 0.01  # of the log-variances of uncertainty: they settle in about a hundred steps
LARGEST = 20.0  # largest absolute value of a log-variance
FAMO_RATE, DECAY = 0.025, 1e-3  # beta and gamma of FAMO (appendix C)
MOMENTA, EPSILON = (0.9, 0.999), 1e-8  # Adam's
SMALLEST = 1e-8  # loss inside logarithms and quotients, as in the authors' code


class Sum(Combiner, name="sum"):
    """Sum of the losses: the weight of every objective is 1 (Bi et al., 2022)."""

    needs_rows = False
    for_one_objective = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(np.ones(len(drawn)), "summed")


class LinearScalarization(WithPreference, name="linear"):
    """Weighted sum: objective i has the weight m r_i, with preference r and the run's m objectives.

    With equal preferences this is the plain sum, whichever objectives are drawn for a step.
    """

    for_one_objective = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        if self.preference is None:
            return Combined(np.ones(len(drawn)), "weighted")
        preference = np.asarray(self.preference, np.float64)
        weights = preference / preference.sum() * len(preference)
        return Combined(weights[list(drawn)], "weighted")


class RandomWeights(Combiner, name="random-weights"):
    """Weights drawn anew in each step: softmax of normal numbers (RLW; Lin et al., 2022).

    With standard normal numbers z, one for each loss of a step, they are m softmax(z).
    """

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        return {"generator": generator(seed, self.name)}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from scipy.special import softmax

        numbers = self.state["generator"].standard_normal(len(drawn))
        return Combined(len(drawn) * softmax(numbers), "weighted")


class Uncertainty(Combiner, name="uncertainty"):
    """Weights by homoscedastic uncertainty, learned from the losses (Kendall et al., 2018).

    Objective i has the weight exp(-s_i); s_i follows the gradient of exp(-s_i) l_i + s_i. The
    log-variances s start at 0 and change by at most 0.01 per step, which limits the effect of an
    outlier. They converge to exp(-s_i) = 1 / l_i, where the scale of a loss has no influence
    (Eq. 7).
    """

    for_one_objective = nonnegative = True

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        return {"log_variances": np.zeros(objectives)}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        log_variances, chosen = self.state["log_variances"], list(drawn)
        weights = np.exp(-log_variances[chosen])
        moved = log_variances[chosen] - RATE * np.clip(1 - weights * losses, -1, 1)
        log_variances[chosen] = np.clip(moved, -LARGEST, LARGEST)
        return Combined(weights, "weighted")


class FAMO(Combiner, name="famo"):
    """FAMO: all losses fall by equal ratios (Liu et al., 2023).

    The logits xi of a run's objectives start at 0 and follow their gradient by Adam.

    Algorithm 1 compares the losses of the *same* batches before and after an update of the model.
    As in the authors' code, the later losses come from another forward pass, here with the same
    dropout. An estimate from the next step's batches would mostly measure their difference.

    In a step that draws only some of the objectives, the softmax is over these, and only their
    logits and moments change. The heads follow their own losses, as with every combiner here.
    """

    nonnegative = compares_losses = True

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        # `moments` are the running means of the gradient and its square.
        none = np.zeros(objectives)
        return {"logits": none, "moments": np.zeros((2, objectives)), "updates": none.copy()}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the weights softmax(logits) / losses with the sum m (Algorithm 1)."""
        from scipy.special import softmax

        shares = softmax(self.state["logits"][list(drawn)]) / np.maximum(losses, SMALLEST)
        return Combined(shares / shares.sum() * len(shares), "weighted")

    def after_step(self, before: np.ndarray, after: np.ndarray, drawn: Sequence[int]) -> None:
        """Follow the gradient (m,) of softmax(logits) @ (log(before) - log(after)) (Algorithm 1).

        An objective whose loss falls by less than the others' gets a larger logit.
        """
        from scipy.special import softmax

        if len(drawn) == 1:  # nothing to compare it with
            return
        chosen = list(drawn)
        all_moments, updates = self.state["moments"], self.state["updates"]
        logits = self.state["logits"][chosen]
        shares = softmax(logits)
        progress = np.log(np.maximum(before, SMALLEST)) - np.log(np.maximum(after, SMALLEST))
        gradient = shares * (progress - shares @ progress) + DECAY * logits
        powers = np.stack([gradient, gradient**2])
        momenta = np.array(MOMENTA)[:, None]
        moments = momenta * all_moments[:, chosen] + (1 - momenta) * powers
        updates[chosen] += 1
        mean, square = moments / (1 - momenta ** updates[chosen])
        self.state["logits"][chosen] = logits - FAMO_RATE * mean / (np.sqrt(square) + EPSILON)
        all_moments[:, chosen] = moments
