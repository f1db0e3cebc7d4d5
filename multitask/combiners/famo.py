"""FAMO, fast adaptive multitask optimisation (Liu et al., 2023), from the losses only."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Combiner

RATE, DECAY = 0.025, 1e-3  # beta and gamma (appendix C)
MOMENTA, EPSILON = (0.9, 0.999), 1e-8  # Adam's
SMALLEST = 1e-8  # loss inside logarithms and quotients, as in the authors' code


def famo_weights(logits: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Return the weights (m,) softmax(logits) / losses with the sum m (Algorithm 1)."""
    from scipy.special import softmax

    shares = softmax(logits) / np.maximum(losses, SMALLEST)
    return shares / shares.sum() * len(shares)


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
        weights = famo_weights(self.state["logits"][list(drawn)], losses)
        return Combined(weights, "weighted")

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
        self.state["logits"][chosen] = logits - RATE * mean / (np.sqrt(square) + EPSILON)
        all_moments[:, chosen] = moments
