"""The rows of our table of ways to train several tasks together: combiners, mixing, conflicts.

Dev is a tenth of train, the files' dev is test, and the last epoch counts: nothing is chosen on the
scores that the page shows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from common.settings import Count, Positive, setting
from multitask.combiners.base import Combined, Combiner
from multitask.sampling import Sampler, Workload, power_probabilities
from papers.paper import Paper, Row, Settings, merged, rates
from tasks import CS224N, build_task
from tasks.base import Task, TaskOptions, lazy_head
from tasks.kinds import classification
from tasks.readers import Examples
from tasks.splits import Derived

SEEDS, FULL_SEEDS = (1, 2, 3, 4, 5), (1, 2, 3)
GRID = rates(3e-5, 1e-4, 3e-4)
TASKS: Settings = {"tasks": {task: {} for task in CS224N}}
STEPS = 170  # a pass over a quarter of STS, the smallest task, without the tenth that is dev
COMMON: Settings = {
    "encoder": "minilm",
    "precision": "bf16",
    "limit": 0.25,
    "protocol": "held-out",
    "drop_leaks": "all",
    "epochs": 3,
    "steps_per_epoch": STEPS,
    "evaluate_every": 3,
    "keep": "last",
    "batch_size": 8,
    "optimizer": {"weight_decay": 0.01, "warmup": 0.1},
}
SMALLEST = 1e-8  # loss inside logarithms and quotients
Relabel = Callable[[np.ndarray], np.ndarray]


class GeometricMean(Combiner, name="gls"):
    """The geometric mean of the losses, times their number m (Chennupati et al., 2019)."""

    nonnegative = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the weights m dM/dl_i = M / l_i of the geometric mean M."""
        found = np.maximum(losses, SMALLEST)
        return Combined(np.exp(np.log(found).mean()) / found, "weighted")


class SmoothTchebycheff(Combiner, name="stch"):
    """A smooth maximum of the losses, times their number m (STCH; Lin et al., 2024, Eq. 8)."""

    smoothing: Positive = setting(
        0.1, help="mu: the smaller, the nearer to the largest loss alone", metavar="MU"
    )

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return m times the gradient, softmax(l / mu), of mu log sum_i exp(l_i / mu)."""
        from scipy.special import softmax

        return Combined(len(losses) * softmax(losses / self.smoothing), "weighted")


class DynamicAverage(Combiner, name="dwa"):
    """The slower a loss falls from window to window, the larger its weight (Liu et al., 2019)."""

    window: Count = setting(STEPS, help="steps of a window; the paper's are epochs")
    softness: Positive = setting(2.0, help="T of the softmax over ratios of losses", metavar="T")
    for_one_objective = True

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        # Sums of losses, and how many: in the last window but one, in the last one, in this one.
        none = np.zeros((3, objectives))
        return {"sums": none, "counts": none.copy(), "steps": np.zeros(1)}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return m softmax(r / T), with the ratios r of the mean losses of the last two windows.

        All weights are 1 before there are two. An objective that one of them lacks has r = 1.
        """
        from scipy.special import softmax

        sums, counts, steps = (self.state[key] for key in ("sums", "counts", "steps"))
        if steps[0] and steps[0] % self.window == 0:
            for one in (sums, counts):
                one[:] = [*one[1:], np.zeros(one.shape[1])]
        steps += 1
        chosen = list(drawn)
        sums[-1, chosen] += losses
        counts[-1, chosen] += 1
        if not counts[0].any():
            return Combined(np.ones(len(chosen)), "weighted")
        before, last = sums[:2] / np.maximum(counts[:2], 1)
        ratios = np.where(counts[:2].all(0), last / np.maximum(before, SMALLEST), 1.0)
        return Combined((len(ratios) * softmax(ratios / self.softness))[chosen], "weighted")


class Adaptive(Sampler, name="adaptive"):
    """Tasks with lower dev scores are drawn more often (Jean, Firat and Johnson, 2019)."""

    epsilon: ClassVar[float] = 0.1  # so that a task with the score 0 does not have all batches

    def probabilities(self, work: Workload, epoch: int) -> np.ndarray:
        """Return probabilities proportional to 1 / (s + 0.1), with the last dev scores s >= 0.

        They are equal in the first epoch. The score of a task is the first of its metrics.
        """
        if not work.history:
            return power_probabilities(work.sizes, 0.0)
        dev = [*work.history[-1]["dev"].values()][: len(work.sizes)]
        scores = np.array([next(iter(metrics.values())) for metrics in dev])
        weights = 1 / (np.maximum(scores, 0) + self.epsilon)
        return weights / weights.sum()


def relabelled(task: Task, name: str, relabel: Relabel, **changes: Any) -> Task:
    """Return a task on the texts of another one, with other labels: `relabel` of targets (n,)."""

    def make(examples: Examples, split: str, folder: Path) -> Examples:
        known = examples.targets
        return replace(examples, targets=None if known is None else relabel(known))

    source = Derived(task.source, make)
    return replace(task, name=name, source=source, output=None, **changes)


class SwappedSentiment(TaskOptions, name="sst-swapped"):
    """SST with very negative and very positive swapped, the other three classes as they are."""

    def build(self) -> Task:
        return relabelled(build_task("sst"), self.name, np.array([4, 1, 2, 3, 0]).__getitem__)


class InferenceOfSimilarity(TaskOptions, name="sts-classes"):
    """Classes of the pairs of STS: entailment from 4 on, contradiction from 3 on, else neutral.

    As in SICK, contradictions are similar pairs, which this task has to tell from other similar
    ones.
    """

    def build(self) -> Task:
        def classes(similarities: np.ndarray) -> np.ndarray:
            return np.digitize(similarities, (3.0, 4.0)).astype(np.int64)

        kind = classification(3, names=("neutral", "contradiction", "entailment"))
        head = lazy_head("PairClassifier", classes=3, difference=True)
        return relabelled(build_task("sts"), self.name, classes, kind=kind, build_head=head)


class OpposedSimilarity(TaskOptions, name="sts-opposed"):
    """STS with the label 5 - similarity."""

    def build(self) -> Task:
        return relabelled(build_task("sts"), self.name, lambda similarities: 5 - similarities)


def extras(
    name: str, folder: Path, metrics: Mapping[str, Any]
) -> dict[tuple[str, str, str], float]:
    """Return the seconds of a step, and the mean cosine of the tasks' gradients by layer."""
    from multitask.loop.telemetry import read_steps

    found = {("step", "train", "seconds"): metrics["training_seconds"] / metrics["steps"]}
    several: dict[str, list[float]] = {}
    for line in read_steps(folder / "telemetry.jsonl"):
        for layer, pairs in {"all layers": line["cosines"], **line.get("layers", {})}.items():
            several.setdefault(layer, []).extend(pairs.values())
    cosines = {layer: float(np.mean(values)) for layer, values in several.items() if values}
    return found | {(layer, "train", "cosine"): value for layer, value in cosines.items()}


def row(*settings: Settings, **more: Any) -> Row:
    """Return a row with its own grid of rates, unless it is tuned `like` another one."""
    grid = {} if "like" in more else {"grid": GRID}
    return Row(merged(COMMON, *settings), **{"seeds": SEEDS, **grid, **more})


def combiner(name: str) -> Row:
    """Return the row of a combiner, also of a user's."""
    return row(TASKS, {"combiner": name})


OF_LOSSES = ("sum", "random-weights", "dwa", "gls", "stch", "uncertainty", "famo")
OF_GRADIENTS: tuple[str, ...] = ("pcgrad", "epo", "mgda", "cagrad", "upgrad", "dualproj")
OF_GRADIENTS += ("imtl-g", "aligned-mtl", "fairgrad", "nash-mtl")
# Weights of SST, QQP and STS, at the rate that is best for the sum.
WEIGHTS = ((2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 1), (4, 2, 1), (1, 2, 4))
LINEAR = {
    "-".join(map(str, one)): {"combiner": {"name": "linear", "preference": one}} for one in WEIGHTS
}
SUM_RATE = 1e-4
# Table B. With a batch a step, three times as many steps see as many examples.
SAMPLERS = ("annealed", "proportional", "square-root", "temperature", "uniform", "adaptive")
SCHEDULES: dict[str, Settings] = {
    "joint": {},
    "individual": {"schedule": "individual", "steps_per_epoch": 3 * STEPS},
    "first": {"schedule": "first-then-joint"},
}
SURGERY: Settings = {"combiner": "pcgrad"}
# Table C: pairs of tasks on the same texts.
PAIRS = {
    "swapped": ("sst", "sst-swapped"),
    "inference": ("sts", "sts-classes"),
    "opposed": ("sts", "sts-opposed"),
}
OF_PAIRS = ("sum", "pcgrad", "cagrad", "upgrad")
OF_ALL_DATA = ("sum", "linear", "uncertainty", "pcgrad", "upgrad", "fairgrad")
ALL_DATA: Settings = {"limit": None, "steps_per_epoch": None}


def mixing() -> dict[str, Row]:
    """Return the rows of Table B; round-robin, joint, are those of `sum` and `pcgrad`."""
    found = {
        "hybrid-joint": row(TASKS, {"sampling": "hybrid"}),
        "hybrid-joint-pcgrad": row(TASKS, {"sampling": "hybrid"}, SURGERY),
        "round-robin-individual": row(TASKS, SCHEDULES["individual"]),
    }
    like = {
        "joint": "sum",
        "joint-pcgrad": "pcgrad",
        "individual": "round-robin-individual",
        "first": "hybrid-joint",  # the same batches with round-robin
        "first-pcgrad": "hybrid-joint-pcgrad",
    }
    for sampler, (column, tuned) in product(("hybrid", *SAMPLERS), like.items()):
        schedule, _, surgery = column.partition("-")
        settings = SCHEDULES[schedule] | (SURGERY if surgery else {}) | {"sampling": sampler}
        scored = {"evaluate_every": 1} if sampler == "adaptive" else {}
        if sampler != "hybrid" or column == "individual":
            found[f"{sampler}-{column}"] = row(TASKS, settings, scored, like=tuned)
    return found


ROWS = {f"only-{task}": row({"tasks": {task: {}}}) for task in CS224N}
ROWS |= {name: combiner(name) for name in (*OF_LOSSES, *OF_GRADIENTS)}
ROWS["linear"] = row(TASKS, *rates(SUM_RATE).values(), grid=LINEAR)
ROWS |= {
    f"{pair}-{name}": row({"tasks": {task: {} for task in tasks}}, {"combiner": name})
    for pair, tasks in PAIRS.items()
    for name in OF_PAIRS
}
ROWS |= mixing()
ROWS |= {
    f"{name}-full": row(ROWS[name].settings, ALL_DATA, seeds=FULL_SEEDS, like=name)
    for name in OF_ALL_DATA
}
PAPER = Paper("combiners", ROWS, ("accuracy", "pearson"), extras=extras, of_method=combiner)
