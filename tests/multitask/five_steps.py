"""Five SGD steps without dropout, by one process or by two: five_steps.py FOLDER."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from two_losses import TwoLosses

from multitask.distributed import Processes, connected_processes
from multitask.loop.batches import next_batches
from multitask.loop.trainer import Trainer
from multitask.regularizers import Smart
from multitask.settings.config import RunConfig
from tasks import CS224N

CONFIG = RunConfig(
    mode="multitask",
    tasks=CS224N,
    encoder="tiny",
    precision="fp32",
    sampling="annealed",
    batches_per_step=4,
    batch_size=5,  # does not go into two shares: one process has three rows, the other two
    epochs=1,
    steps_per_epoch=5,
    limit=16,  # and the last batch of a pass has a single row
    clip=1e6,  # never reached
)
ONE = {"mode": "single", "batches_per_step": 1, "combiner": "sum"}
REPRESENTATION = {"gradients": "representation"}
CONTRASTIVE = ONE | {"tasks": ("qqp",), "objective": "epo"}
PRETRAINING = {
    "mode": "pretrain",
    "tasks": ("sts",),
    "objective": {"name": "simcse", "projection": True},
    "sampling": "round-robin",
    "batches_per_step": None,
    "micro_batch": 2,
}
CLASSES = {
    "tasks": ("sst",),
    "objective": {"name": "superloss", "projection_head": "linear", "negatives": 4},
    "class_balanced": True,
    "batch_size": 11,
}
WEIGHTS = {"sst": 1.0, "sts": 3.0}
CHANGES = {
    "superloss": PRETRAINING | CLASSES,
    "lacon-fusion": ONE | {"tasks": ("sst",), "objective": "lacon-fusion"},
    "contrastive": CONTRASTIVE,
    "contrastive-representation": CONTRASTIVE | REPRESENTATION,
    "pcgrad-representation": ONE | {"tasks": (TwoLosses(),), "combiner": "pcgrad"} | REPRESENTATION,
    "simcse": PRETRAINING,
    "branches": {"combiner": "pcgrad", "branch": "top-1", "micro_batch": 2},
    "smart": {"combiner": "pcgrad", "regularizers": Smart(WEIGHTS)},
    "smart-projected": {"regularizers": Smart(WEIGHTS, variant="projected"), "micro_batch": 2},
}
KINDS = (*CHANGES, "sum", "pcgrad", "epo", "famo")


def take_steps(config: RunConfig, file: Path, group: Processes) -> None:
    """The first combined gradient and the weights after five steps, by the first process."""
    trainer = Trainer(config, file.parent, group)
    model = trainer.model
    trainer.telemetry.folder = None
    model.eval()
    if config.mode == "pretrain":
        model.heads.train()  # the projection, which has no dropout
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    kept: dict[str, torch.Tensor] = {}
    for number, step in enumerate(trainer.plan.steps(1)):
        trainer.gradient(next_batches(trainer.streams, step), step=number)
        if not kept:
            kept = {
                f"gradient/{name}": p.grad.to_dense().clone()
                for name, p in model.named_parameters()
                if p.grad is not None
            }
        sgd.step()
        sgd.zero_grad(set_to_none=True)
    kept |= {f"weight/{name}": p.detach() for name, p in model.named_parameters()}
    if group.first:
        torch.save(kept, file)


def main(folder: str) -> None:
    """One file a kind; all in one go, for starting two processes takes longer than the steps."""
    for kind in KINDS:
        config = replace(CONFIG, **CHANGES.get(kind, {"combiner": kind}))
        take_steps(config, Path(folder) / kind, connected_processes())


if __name__ == "__main__":
    main(sys.argv[1])
