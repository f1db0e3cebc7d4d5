"""Figure 2 of SCL-MOO, three methods on a non-convex front: python -m studies.toy_front

The two losses are those of Fonseca and Fleming with n = 20 variables. All methods have the same
starting points and preferences. The results are toy-front.json and toy-front.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from common.argument_types import typed
from common.entry_point import start
from common.environment import environment
from common.json_files import write_json
from common.settings import Count, Seed
from multitask.combiners import Combiner, Setup
from multitask.combiners.epo import non_uniformity
from multitask.combiners.pareto_mtl import preference_rays
from multitask.settings.methods import methods
from reports.front import Front, draw_fronts, front_table
from reports.tables import text_table

VARIABLES, STEPS, RATE = 20, 400, 0.05
METHODS = {"linear": "linear scalarization", "pareto-mtl": "Pareto MTL", "epo": "EPO"}


def toy(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return losses (2,) and gradients (2, n) of f = 1 - exp(-|x -+ 1/sqrt(n)|^2)."""
    ends = np.stack([np.full(len(x), sign / np.sqrt(len(x))) for sign in (1, -1)])
    decay = np.exp(-((x - ends) ** 2).sum(1))
    return 1 - decay, 2 * decay[:, None] * (x - ends)


def search(method: str, preference: np.ndarray, cones: int, start: np.ndarray) -> np.ndarray:
    """Return the final losses of a method."""
    cls = methods("combiner")[method]
    given = {"preference": tuple(preference.tolist()), "cones": cones}
    settings = {key: value for key, value in given.items() if key in cls.by_key()}
    made = cls(**settings)
    assert isinstance(made, Combiner)
    combiner, x = made.build(Setup(("f1", "f2"))), start.copy()
    for _ in range(STEPS):
        losses, gradients = toy(x)
        weights = combiner.combine(gradients @ gradients.T, losses, (0, 1)).weights
        # EPO's step size for all methods: large far from the ray (Mahapatra and Rajan, 2020).
        x -= 10 * RATE * max(non_uniformity(losses, preference), 0.1) * (weights / 2) @ gradients
    return toy(x)[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.toy_front", description=__doc__)
    parser.add_argument("--preferences", type=typed(Count), default=9, help="number of rays")
    parser.add_argument("--seed", type=typed(Seed), default=0, help="random seed of the points")
    parser.add_argument("--output", type=Path, default=Path("results/toy-front"))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    rays = preference_rays(2, args.preferences)
    random = np.random.default_rng(args.seed)
    starts = random.uniform(-0.5, 0.5, (len(rays), VARIABLES))
    fronts = [
        Front(
            title,
            ("f1", "f2"),
            rays,
            np.array([search(m, r, len(rays), s) for r, s in zip(rays, starts, strict=True)]),
            np.ones(2),
        )
        for m, title in METHODS.items()
    ]
    line = np.linspace(1, -1, 200)[:, None] / np.sqrt(VARIABLES) * np.ones(VARIABLES)
    draw_fronts(fronts, args.output / "toy-front.png", np.array([toy(x)[0] for x in line]))
    content = {
        "command": f"python -m studies.toy_front --preferences {args.preferences} "
        f"--seed {args.seed}",
        "environment": environment(),
        "fronts": [front.to_json() for front in fronts],
    }
    write_json(args.output / "toy-front.json", content)
    print(text_table(*front_table(fronts)))


if __name__ == "__main__":
    start("python -m studies.toy_front", main)
