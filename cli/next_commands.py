"""The commands worth running after a training run, as printed at its end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from common.entry_point import program_command
from multitask.settings.config import RunConfig
from tasks import SAMPLE

# By the number of texts of an example; a tab separates the texts of a pair.
EXAMPLES = {
    1: 'echo "a film to love"',
    2: r"printf 'A cat sleeps.\tA cat is asleep.\n'",
}


def next_commands(config: RunConfig, folder: Path, use: Sequence[str] = ()) -> str:
    """Return three commands for the run in a folder, each with its purpose.

    They run as printed, in the folder in which this process was started. `use` are the files of the
    user's methods.
    """
    run, further = str(folder), use_words(use)
    chosen = after_pretraining if config.pretrains else after_training
    lines = [f"{command}\n    {purpose}" for command, purpose in chosen(config, run, further)]
    return "next:\n" + "\n".join(f"  {line}" for line in lines)


def use_words(files: Sequence[str]) -> list[str]:
    """Return the words of a command that name the files of the user's methods."""
    return [word for file in files for word in ("--use", file)]


def after_training(config: RunConfig, run: str, use: list[str]) -> Iterator[tuple[str, str]]:
    """Yield commands for a run of tasks: predict, compare, and the page or an export."""
    texts = max(config.options_of(name).build().texts for name in config.main_tasks)
    predict = command("--mode", "predict", "--run", run, *use)
    yield f"{EXAMPLES[texts]} | {predict}", "predict a text of your own"
    if not config.source_files():
        report = command("--mode", "compare", "--runs", run, "--output", f"{run}-report")
        yield report, "write a report: scores and confusions; --runs takes further runs"
    if find_spec("fastapi") and find_spec("uvicorn"):
        yield command("--mode", "serve", "--run", run, *use), "try the heads in a browser"
    else:
        yield command("--mode", "runs", "--root", str(Path(run).parent)), "list all runs by score"


def after_pretraining(config: RunConfig, run: str, use: list[str]) -> Iterator[tuple[str, str]]:
    """Yield commands for an encoder that was trained further: probe it, train on it, list runs."""
    data = [] if config.data == SAMPLE else ["--data", config.data]
    probe = command("--mode", "probe", "--task", "sst", "--init", run, *data)
    yield probe, "fit a classifier to its frozen embeddings"
    train = command("--mode", "multitask", "--init", run, *data)
    yield train, "train sentiment, paraphrase and similarity from it"
    yield command("--mode", "runs", "--root", str(Path(run).parent)), "list all runs by score"


def command(*words: str) -> str:
    """Return a command of this program for the shell."""
    return shlex.join([*program_command(), *words])
