"""Time from process start to a result, beside sentence-transformers, each in its own process."""

import argparse
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.timing import Figures, figures, in_rounds, timed

ROOT = str(Path(__file__).parents[1])
PEER = "sentence-transformers"
# The scripts import only what their users would, and end with the first step.
FIRST_STEP = """
import os
from cli import main
from multitask.loop.trainer import Trainer  # a run imports it, too
step = Trainer.train_step
Trainer.train_step = lambda *args: (step(*args), os._exit(0))
raise SystemExit(main(["--mode", "single", "--task", "sts", "--output", "run"]) or "no step")
"""
FIRST_STEP_OF_PEER = """
import os
from datasets import Dataset
import sentence_transformers as st
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from minbert.sources import minilm_folder
from tasks import build_task, data_folder
examples = build_task("sts").read(data_folder("sample"), "train")
data = {"first": examples.texts[0], "second": examples.texts[1], "score": examples.targets / 5}
options = {"per_device_train_batch_size": 16, "optim": "adamw_torch_fused", "max_steps": 1}
arguments = st.SentenceTransformerTrainingArguments("run", save_strategy="no", **options)
model, rows = st.SentenceTransformer(str(minilm_folder())), Dataset.from_dict(data)
st.SentenceTransformerTrainer(model, arguments, rows, loss=CosineSimilarityLoss(model)).train()
os._exit(0)
"""
ENCODE = "--mode encode --input sentence.txt --output sentence.npy"
ENCODE_WITH_PEER = """
import numpy as np
from sentence_transformers import SentenceTransformer
from minbert.sources import minilm_folder
model = SentenceTransformer(str(minilm_folder()))
np.save("sentence.npy", model.encode(open("sentence.txt").read().splitlines()))
"""
COMMANDS = {  # arguments of Python, the peer's and ours
    "first training step": (["-c", FIRST_STEP_OF_PEER], ["-c", FIRST_STEP]),
    "load and encode one sentence": (["-c", ENCODE_WITH_PEER], [f"{ROOT}/run.py", *ENCODE.split()]),
}


def measure(args: argparse.Namespace) -> dict[str, Figures]:
    """Return seconds and speed-ups over sentence-transformers, by group."""
    groups = {}
    for group, (peer, ours) in COMMANDS.items():
        sides = {PEER: partial(seconds_of, peer), "run.py": partial(seconds_of, ours)}
        groups[group] = figures(in_rounds(sides, args.repetitions), PEER)
    return groups


def seconds_of(command: list[str]) -> float:
    """Return the seconds from the start of a process to its end; raise if it fails."""
    variables = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true", "PYTHONPATH": ROOT}
    run = partial(subprocess.run, env=os.environ | variables, capture_output=True, check=True)
    with TemporaryDirectory() as folder:
        Path(folder, "sentence.txt").write_text("A cat sleeps on the sofa.\n")
        return timed(partial(run, [sys.executable, *command], cwd=folder))
