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
from multitask.combiners.loss_weights import SMALLEST
from multitask.sampling import Sampler, Workload, power_probabilities
from papers.paper import Paper, Row, Settings, merged, rates
from tasks import CS224N, build_task
from tasks.base import Task, TaskOptions
from tasks.readers import Examples
from tasks.splits import Derived

SEEDS, FULL_SEEDS = (1, 2, 3, 4, 5), (1, 2, 3)
GRID = rates(3e-5, 1e-4, 3e-4)
TASKS: Settings = {"tasks": {task: {} for task in CS224N}}
STEPS = 84  # a pass over a quarter of STS, the smallest task, without the tenth that is dev
COMMON: Settings = {
    "encoder": "minilm",
    "precision": "bf16",
    "limit": 0.25,
    "protocol": "held-out",
    "drop_leaks": "all",
    "dev_limit": 1000,
    "epochs": 3,
    "steps_per_epoch": STEPS,
    "evaluate_every": 3,
    "keep": "last",
    "batch_size": 16,
    "optimizer": {"weight_decay": 0.01, "warmup": 0.1},
}
Relabel = Callable[[np.ndarray], np.ndarray]


class GeometricMean(Combiner, name="gls"):
    """The geometric mean of the losses, times their number m (Chennupati et al., 2019)."""

    nonnegative = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the weights m dM/dl_i = M / l_i of the geometric mean M."""
        found = np.maximum(losses, SMALLEST)
        return Combined(np.exp(np.log(found).mean()) / found, "weighted")


class SmoothTchebycheff(Combiner, name="stch"):
    """A smooth maximum of the losses relative to those of the first steps (STCH; Lin et al., 2024).

    As in the authors' multi-task code, the warm-up adds up the logarithms of the losses.
    """

    nonnegative = True
    smoothing: Positive = setting(1.0, help="mu: the smaller, the nearer to the largest loss alone")
    warm_up: Count = setting(
        STEPS * 3 // 10, help="steps whose mean losses the others are compared with"
    )

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        none = np.zeros(objectives)
        return {"sums": none, "counts": none.copy(), "steps": np.zeros(1)}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the gradient of sum_i log l_i, then of m mu log sum_i (l_i / n_i)^(1 / mu).

        n are the mean losses of the warm-up.
        """
        from scipy.special import softmax

        sums, counts, steps = (self.state[key] for key in ("sums", "counts", "steps"))
        chosen, found = list(drawn), np.maximum(losses, SMALLEST)
        steps += 1
        if steps[0] <= self.warm_up:
            sums[chosen] += losses
            counts[chosen] += 1
            return Combined(1 / found, "warm-up")
        usual = np.maximum(sums[chosen] / np.maximum(counts[chosen], 1), SMALLEST)
        shares = softmax(np.log(found / usual) / self.smoothing)
        return Combined(len(found) * shares / found, "weighted")


class DynamicAverage(Combiner, name="dwa"):
    """The slower a loss falls from window to window, the larger its weight (Liu et al., 2019)."""

    window: Count = setting(STEPS // 10, help="steps of a window; the paper's are epochs")
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
    """Tasks with low dev scores are drawn more often (after Jean, Firat and Johnson, 2019)."""

    baselines: tuple[Positive, ...] = setting(
        (), help="dev score of a model of each task alone (default: 1, the best possible one)"
    )
    epsilon: ClassVar[float] = 0.1  # so that a task with the score 0 does not have all batches

    def probabilities(self, work: Workload, epoch: int) -> np.ndarray:
        """Return probabilities proportional to 1 / (min(1, s / b) + 0.1), s the last dev scores.

        They are equal before the first scores. The score of a task is the first of its metrics.
        """
        if not work.history:
            return power_probabilities(work.sizes, 0.0)
        dev = [*work.history[-1]["dev"].values()][: len(work.sizes)]
        scores = np.array([next(iter(metrics.values())) for metrics in dev])
        relative = np.clip(scores / (self.baselines or 1.0), 0, 1)
        weights = 1 / (relative + self.epsilon)
        return weights / weights.sum()


def relabelled(task: Task, name: str, relabel: Relabel) -> Task:
    """Return a task on the texts of another one, with other labels: `relabel` of targets (n,)."""

    def make(examples: Examples, split: str, folder: Path) -> Examples:
        known = examples.targets
        return replace(examples, targets=None if known is None else relabel(known))

    return replace(task, name=name, source=Derived(task.source, make), output=None)


class SwappedSentiment(TaskOptions, name="sst-swapped"):
    """SST with very negative and very positive swapped; a head of its own can undo this."""

    def build(self) -> Task:
        return relabelled(build_task("sst"), self.name, np.array([4, 1, 2, 3, 0]).__getitem__)


class ContradictedSimilarity(TaskOptions, name="sts-contradicted"):
    """The cosine as STS, but 0 for its pairs from 3 to 4: similar texts with another meaning.

    SICK has such pairs: related, and a contradiction.
    """

    def build(self) -> Task:
        task = build_task("sts", head="cosine")
        return relabelled(task, self.name, lambda s: np.where((s >= 3) & (s < 4), 0, s))


class OpposedSimilarity(TaskOptions, name="sts-opposed"):
    """The cosine as 5 - STS."""

    def build(self) -> Task:
        return relabelled(build_task("sts", head="cosine"), self.name, lambda s: 5 - s)


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


OF_LOSSES = ("random-weights", "dwa", "gls", "stch", "uncertainty", "famo")
OF_GRADIENTS = (
    *("pcgrad", "epo", "mgda", "cagrad", "upgrad"),
    *("dualproj", "imtl-g", "aligned-mtl", "fairgrad", "nash-mtl"),
)
# Weights of SST, QQP and STS, at the rate that is best for the sum.
WEIGHTS = ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 1), (4, 2, 1))
LINEAR = {
    "-".join(map(str, one)): {"combiner": {"name": "linear", "preference": one}} for one in WEIGHTS
}
# Table B. With a batch a step, three times as many steps see as many examples.
SAMPLERS = ("annealed", "proportional", "square-root", "temperature", "uniform", "adaptive")
SCHEDULES: dict[str, Settings] = {
    "joint": {},
    "individual": {"schedule": "individual", "steps_per_epoch": 3 * STEPS},
    "first": {"schedule": "first-then-joint"},
}
SURGERY: Settings = {"combiner": "pcgrad"}
ADAPTIVE: Settings = {  # with the best dev scores in the tuning of the models of one task
    "sampling": {"name": "adaptive", "baselines": (0.443, 0.79, 0.882)},
    "evaluate_every": 1,
}
# Table C: pairs of tasks on the same texts. The heads of STS are cosines, which share everything.
# With small batches, noise hides the cosine of the tasks' gradients.
COSINE = {"head": "cosine"}
LARGE: Settings = {"batch_size": 32, "steps_per_epoch": STEPS // 2}
PAIRS: dict[str, Settings] = {
    "swapped": {"sst": {}, "sst-swapped": {}},
    "contradicted": {"sts": COSINE, "sts-contradicted": {}},
    "opposed": {"sts": COSINE, "sts-opposed": {}},
}
OF_PAIRS = ("pcgrad", "cagrad", "upgrad")  # beside the sum
OF_ALL_DATA = ("sum", "linear", "uncertainty", "pcgrad", "upgrad", "fairgrad")
ALL_DATA: Settings = {"limit": None, "steps_per_epoch": None}


def mixing() -> dict[str, Row]:
    """Return the rows of Table B; round-robin, joint, are those of `sum` and `pcgrad`."""
    found = {
        "hybrid-joint": row(TASKS, {"sampling": "hybrid"}),
        "hybrid-joint-pcgrad": row(TASKS, {"sampling": "hybrid"}, SURGERY),
        "round-robin-individual": row(TASKS, SCHEDULES["individual"]),
    }
    tuned_like = {
        "joint": "sum",
        "joint-pcgrad": "pcgrad",
        "individual": "round-robin-individual",
        "first": "hybrid-joint",  # the same batches with round-robin
        "first-pcgrad": "hybrid-joint-pcgrad",
    }
    for sampler, (column, other) in product(SAMPLERS, tuned_like.items()):
        schedule, _, surgery = column.partition("-")
        settings = SCHEDULES[schedule] | (SURGERY if surgery else {})
        sampling = ADAPTIVE if sampler == "adaptive" else {"sampling": sampler}
        found[f"{sampler}-{column}"] = row(TASKS, settings, sampling, like=other)
    individual = {**SCHEDULES["individual"], "sampling": "hybrid"}
    found["hybrid-individual"] = row(TASKS, individual, like="round-robin-individual")
    return found


ROWS = {f"only-{task}": row({"tasks": {task: {}}}) for task in CS224N}
ROWS |= {name: combiner(name) for name in ("sum", *OF_LOSSES, *OF_GRADIENTS)}
ROWS["linear"] = row(TASKS, like="sum", grid=LINEAR)
ROWS |= {
    f"{pair}-{name}": row({"tasks": tasks, "combiner": name}, LARGE)
    for pair, tasks in PAIRS.items()
    for name in ("sum", *OF_PAIRS)
}
ROWS |= mixing()
ROWS |= {
    f"{name}-full": row(ROWS[name].settings, ALL_DATA, seeds=FULL_SEEDS, like=name)
    for name in OF_ALL_DATA
}
PAPER = Paper("combiners", ROWS, ("accuracy", "pearson"), extras=extras, of_method=combiner)
