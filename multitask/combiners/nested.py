"""Two levels of combination: first the objectives of each task, then the tasks.

A task of SCL-MOO has three objectives: cross-entropy, pull and push. EPO balances the two
contrastive ones. Another combiner then sees one mixture per task. Only the Gram matrix is used.
"""

from collections.abc import Sequence

import numpy as np

from multitask.combiners.base import Combined, Combiner
from multitask.combiners.epo import epo_solution
from tasks.objectives import PULL_PUSH, ContrastiveEPO

LOWEST = 1e-9  # smallest objective for EPO: batches may fall below the ideal point
VERTEX = 1 - 1e-6  # a larger weight counts as 1: the other objective has no influence


def pull_push_weights(balance: ContrastiveEPO, gram: np.ndarray, losses: np.ndarray) -> Combined:
    """Combine cross-entropy, pull and push of one task; return the weights (3,).

    Moukafih et al. (2022), Algorithm 1:  (1 - weight) CE + weight (b_1 pull + b_2 push),  with b
    from EPO for the preference r. The first objective is already (1 - weight) CE, so that the
    gradient of the head is scaled, too. With `inputs` "contrastive" EPO sees pull and push, as in
    Algorithm 1; with "combined" both contain cross-entropy, as in Eq. 4 and 5. b adds up to 1, not
    to m, which would change the share of cross-entropy.

    Args:
        gram: products of the objectives' gradients (3, 3).
        losses: (1 - weight) CE, and pull and push above their ideal points (3,).
    """
    share = balance.weight
    if balance.inputs == "combined":
        mixtures = np.array([[1, share, 0], [1, 0, share]])
    else:
        mixtures = np.array([[0.0, 1, 0], [0, 0, 1]])
    if (np.diag(gram)[1:] > 0).all():
        mixed_losses = mixtures @ losses
        found, status = epo_solution(
            mixtures @ gram @ mixtures.T, np.maximum(mixed_losses, LOWEST), balance.shares
        )
        if mixed_losses.min() < LOWEST:
            status = f"{status}, below an ideal point"
        if found.max() > VERTEX:
            status = f"{status}, at a vertex"
    else:  # a batch of one class, or one example per class: use the preference
        found, status = np.array(balance.shares), "pull or push undefined"
    return Combined(np.array([1, *(share * found)]), status)


def combine_tasks(
    combiner: Combiner,
    balance: ContrastiveEPO,
    gram: np.ndarray,
    losses: np.ndarray,
    drawn: Sequence[str],
    tasks: Sequence[str],
) -> Combined:
    """Balance the three objectives of each task that has them, then combine the tasks.

    `drawn` are the names of the step's objectives; `tasks` are those of the run, in the order of
    `combiner`.
    """
    owners = [name.partition("/")[0] for name in drawn]
    names = list(dict.fromkeys(owners))
    mixtures, statuses = np.zeros((len(names), len(drawn))), []
    for row, name in zip(mixtures, names, strict=True):
        own = [index for index, owner in enumerate(owners) if owner == name]
        row[own] = 1
        if [drawn[i] for i in own] == [f"{name}/{term}" for term in PULL_PUSH]:
            found = pull_push_weights(balance, gram[np.ix_(own, own)], losses[own])
            row[own] = found.weights
            statuses.append(found.status)
    of_tasks, numbers = mixtures @ gram @ mixtures.T, [tasks.index(name) for name in names]
    whole = combiner.combine(of_tasks, np.maximum(mixtures @ losses, LOWEST), numbers)
    if len(names) > 1 or not statuses:
        statuses.append(whole.status)
    return Combined(whole.weights @ mixtures, "; ".join(statuses))
