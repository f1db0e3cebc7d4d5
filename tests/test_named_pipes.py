"""A named pipe in place of a file is refused in one line and never waited for."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from common.atomic_files import file_lock
from common.errors import UserError
from common.json_files import integrity_error
from minbert import BiEncoder
from minbert.words import read_vectors
from multitask.loop.telemetry import Telemetry, read_steps
from multitask.storage.run_folder import RunFolder
from multitask.storage.stored_runs import read_run
from tasks import build_task
from tasks.described import parse_description
from tasks.hub import fetch
from tasks.predictions import read_scores
from tasks.tables import columns_of, read_sentences, rows_by_name

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
TINY = BiEncoder.from_pretrained("tiny")


def from_pretrained(file: Path) -> None:
    """Open an encoder's folder in which this file is the pipe."""
    TINY.save_pretrained(file.parent / "whole")
    for whole in (file.parent / "whole").iterdir():
        if whole.name != file.name:
            target = file.parent / whole.name
            (shutil.copytree if whole.is_dir() else shutil.copy)(whole, target)
    if file.name in ("pytorch_model.bin", "model.safetensors.index.json"):
        (file.parent / "model.safetensors").unlink()
    if file.name in ("vocab.txt", "merges.txt"):
        (file.parent / "tokenizer.json").unlink()
    BiEncoder.from_pretrained(file.parent)


ENCODER = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "merges.txt"),
    *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"),
)
READERS = {
    **dict.fromkeys(ENCODER, from_pretrained),
    "glove.txt": lambda file: read_vectors(file, ["a"]),
    "ids-sst-train.csv": lambda file: build_task("sst").read(file.parent, "train"),
    "own.txt": lambda file: list(read_sentences(file)),
    "own.jsonl": lambda file: list(rows_by_name(file, ["a"])),
    "own.parquet": lambda file: list(rows_by_name(file, ["a"])),
    "columns.parquet": lambda file: columns_of(file, False),
    "sst/state.json": lambda file: fetch("sst", file.parent.parent),
    "own.yaml": lambda file: parse_description(f"own={file}"),
    "sst-dev-probabilities.npz": read_scores,
    "telemetry.jsonl": lambda file: list(read_steps(file)),
    "metrics.json": lambda file: read_run(run_of(file)),
    "run.lock": lambda file: file_lock(file.with_suffix("")).__enter__(),
}


def run_of(file: Path) -> Path:
    (file.parent / "config.json").write_text('{"mode": "single", "tasks": ["sst"]}')
    return file.parent


@pytest.fixture
def pipe():
    """`pipe(file)` makes one; whoever opens it meets its end, so that no test waits for it."""
    writers = []

    def make(file: Path) -> Path:
        file.parent.mkdir(exist_ok=True)
        os.mkfifo(file)
        loop = 'while :; do : <> "$1"; sleep 0.02; done'
        writers.append(subprocess.Popen(["sh", "-c", loop, "sh", str(file)]))
        return file

    yield make
    for writer in writers:
        writer.kill()
        writer.wait(10)


@pytest.mark.parametrize("name", READERS)
def test_a_named_pipe_in_the_place_of_a_file_is_refused_in_one_line(pipe, tmp_path, name):
    file = pipe(tmp_path / name)
    with pytest.raises(UserError) as error:
        READERS[name](file)
    message = str(error.value)
    assert message == f"{file}: expected a regular file, found a named pipe"


def test_in_a_runs_folder_and_a_sealed_one_it_is_refused_too(pipe, tmp_path):
    pipe(tmp_path / "SHA256SUMS")
    assert "expected a regular file" in str(integrity_error(tmp_path))
    file = pipe(tmp_path / "run" / "telemetry.jsonl")
    with pytest.raises(UserError, match=r"telemetry\.jsonl: expected a file of a run"):
        RunFolder(file.parent).run_or_nothing()
    with pytest.raises(UserError, match="expected a regular file, found a named pipe"):
        Telemetry(file.parent).forget_after(1)
