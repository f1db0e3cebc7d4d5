"""The modes of the command line: one line each, from which help and checks follow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mode:
    """A mode, whose flags and `main` are in the module of cli/ with its name.

    `group` and `help` are its place and text in `--help`. `user_methods`: it has `--use`.
    `distributed`: several processes can train together.
    """

    group: str
    help: str
    user_methods: bool = False
    distributed: bool = False


MODES = {
    "single": Mode("train", "train one task", user_methods=True, distributed=True),
    "multitask": Mode(
        "train",
        "train several tasks on one shared encoder",
        user_methods=True,
        distributed=True,
    ),
    "pretrain": Mode(
        "train",
        "train the encoder further on sentences, pairs or classes",
        user_methods=True,
        distributed=True,
    ),
    "probe": Mode(
        "train", "fit a logistic regression on a frozen encoder's embeddings", user_methods=True
    ),
    "ensemble": Mode("train", "merge the predictions of several finished runs"),
    "evaluate": Mode("evaluate", "check and score leaderboard files, and pack them"),
    "compare": Mode("evaluate", "compare runs: means over seeds, gains, significance tests"),
    "runs": Mode("evaluate", "list the runs of a folder"),
    "reproduce": Mode("evaluate", "reproduce the tables of a paper from its configurations"),
    "predict": Mode("use", "predict new texts with a run", user_methods=True),
    "serve": Mode(
        "use", "serve the heads of a run: a web page and a JSON interface", user_methods=True
    ),
    "encode": Mode("use", "embed the sentences of a file", user_methods=True),
    "export": Mode("use", "export a run to a folder for other libraries", user_methods=True),
    "tasks": Mode("data", "list the tasks and the examples that are found for them"),
    "download": Mode("data", "download data from the hub as files of CS224N and GLUE"),
}
GROUPS = tuple(dict.fromkeys(one.group for one in MODES.values()))
DISTRIBUTED = tuple(name for name, one in MODES.items() if one.distributed)
