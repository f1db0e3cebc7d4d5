"""The modes of the command line by group; each has its flags and `main` in a module of its name."""

GROUPS = {
    "train": {
        "single": "train one task",
        "multitask": "train several tasks on one shared encoder",
        "pretrain": "train the encoder further on sentences, pairs or classes",
        "probe": "fit a logistic regression on a frozen encoder's embeddings",
        "ensemble": "merge the predictions of several finished runs",
    },
    "evaluate": {
        "evaluate": "check and score leaderboard files, and pack them",
        "compare": "compare runs: means over seeds, differences with intervals, a page",
        "runs": "list the runs of a folder",
        "reproduce": "reproduce the tables of a paper from its configurations",
    },
    "use": {
        "predict": "predict new texts with a run",
        "serve": "serve the heads of a run: a web page and a JSON interface",
        "encode": "embed the sentences of a file",
        "export": "export a run to a folder for other libraries",
    },
    "data": {
        "tasks": "list the tasks and the examples that are found for them",
        "download": "download data from the hub as files of CS224N and GLUE",
    },
}
MODES = [name for modes in GROUPS.values() for name in modes]
