"""Balance of pull and push under EPO: python -m studies.balance --data DIR

Train a task (default: SST-5) with `--objective epo` (default: equal preferences). Report from the
telemetry the statuses of EPO's steps, its mean weights, and the final difference between r_1 pull
and r_2 push, each above its ideal point.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from common.argument_types import typed
from common.entry_point import start
from common.settings import Count, Part, Seed
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.rays import ray_text
from multitask.run import complete
from multitask.run_folder import RunFolder
from multitask.stored_config import without_paths
from multitask.telemetry import read_steps
from reports.cells import check_config, read_cell, write_cell
from reports.figures import heading, new_figure, save_figure, styled
from reports.tables import text_table
from tasks import TASKS


def configuration(args: argparse.Namespace) -> RunConfig:
    first = args.preference
    return RunConfig(
        mode="single",
        tasks=(args.task,),
        data=args.data,
        limit=args.limit,
        encoder=args.encoder,
        objective="epo",
        class_balanced=True,
        gradients="representation",
        scl_preference=(first, 1 - first),
        batch_size=20,
        epochs=args.epochs,
        evaluate_every=args.epochs,
        precision="fp32",
        seed=args.seed,
    )


def measured(folder: Path, config: RunConfig) -> dict[str, Any]:
    """Return statuses, weights and z-values (preference times objective) of the run's steps.

    The weights of pull and push are normalised to add up to 1.
    """
    (task,) = config.tasks
    steps = list(read_steps(RunFolder(folder).steps))
    names = [f"{task}/pull", f"{task}/push"]
    losses = np.array([[line["losses"][name] for name in names] for line in steps])
    weights = np.array([[line["weights"][name] for name in names] for line in steps])
    z = losses * np.array(config.objective.preference)
    weights /= weights.sum(1, keepdims=True)
    metrics = RunFolder(folder).metrics()
    assert metrics is not None
    end = metrics["rays"][task]
    return {
        "config": without_paths(config),
        "steps": len(steps),
        "statuses": metrics["combiner_steps"],
        "at_the_end": end,
        "mean_weights": dict(zip(names, weights.mean(0).tolist(), strict=True)),
        "dev": metrics["dev"],
        "environment": metrics["environment"],
        "z": z[:: max(1, len(z) // 200)].round(4).tolist(),
        "weights": weights[:: max(1, len(z) // 200)].round(4).tolist(),
    }


@styled
def draw(found: dict[str, Any], file: Path) -> None:
    """Plot the z-values over the steps."""
    figure, axis = new_figure(4.6, 3.4)
    z = np.array(found["z"])
    steps = np.linspace(1, found["steps"], len(z))
    for column, name in zip(z.T, ("pull", "push"), strict=True):
        axis.plot(steps, column, label=f"r x {name}")
    axis.set(xlabel="step", ylabel="above the ideal point")
    heading(
        axis, "Weighted losses by step", f"{found['steps']:,} steps, seed {found['config']['seed']}"
    )
    axis.legend()
    save_figure(figure, file)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.balance", description=__doc__)
    parser.add_argument("--data", default="sample", help="folder with the CS224N files")
    parser.add_argument(
        "--task",
        choices=[name for name, task in TASKS.items() if task.predicts == "class"],
        default="sst",
    )
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--limit", type=typed(Count), default=4000, help="training examples")
    parser.add_argument("--epochs", type=typed(Count), default=3)
    parser.add_argument(
        "--preference", type=typed(Part), default=0.5, help="pull's share (default: 0.5)"
    )
    parser.add_argument("--seed", type=typed(Seed), default=11711)
    parser.add_argument("--results", type=Path, default=Path("results/balance"))
    parser.add_argument("--runs", type=Path, default=Path("runs/balance"))
    args = parser.parse_args()
    config = configuration(args)
    name = f"{args.task}-r{args.preference:g}"
    args.results.mkdir(parents=True, exist_ok=True)
    file = args.results / f"{name}.json"
    if file.exists():  # never replace another configuration's
        check_config(file, config, read_cell(file)["config"], ignored=("linear",))
    folder = args.runs / f"{name}-{config.digest()}"
    complete(config, folder, RunControl(resume=True))
    found = measured(folder, config)
    write_cell(file, found)
    draw(found, args.results / f"{name}.png")
    total = sum(found["statuses"].values())
    rows = [[status, f"{n / total:.0%}"] for status, n in found["statuses"].items()]
    print(text_table(["EPO's steps", "share"], rows))
    print(ray_text(args.task, found["at_the_end"]))
    print(f"mean weights {found['mean_weights']}")


if __name__ == "__main__":
    start("python -m studies.balance", main)
