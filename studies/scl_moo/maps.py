"""Figure 4 of SCL-MOO: where SST-2's test sentences lie after training on 20 of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from multitask.assembly import plain_tasks
from studies.maps import draw_maps, drawn_run
from studies.scl_moo.experiments import METHODS, SEEDS, Experiments
from studies.seeds import SeedCell
from tasks import data_folder

SHOWN = ("ls", "epo", "scl")  # the paper's three, from left to right
TASK, SHOTS = "sst2", 20


def mapped(cells: Experiments) -> list[SeedCell]:
    """The cells one run of each of which is drawn."""
    return [cells.few_shot(TASK, SHOTS, method) for method in SHOWN]


def draw_trained(cells: Experiments, results: Path, runs: Path) -> None:
    """Train a run a method, which stays, and draw its [CLS] embeddings."""
    found = {}
    for method in SHOWN:
        config = replace(cells.few_shot(TASK, SHOTS, method).config, seed=SEEDS[0])
        found[METHODS[method]] = drawn_run(config, runs, method)
    test = plain_tasks(config)[TASK].read(data_folder(config.data), "test")
    draw_maps(found, test, results / "maps.png")
