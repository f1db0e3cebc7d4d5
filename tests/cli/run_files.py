"""The files of a finished run, read for the tests."""

import csv
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

import cli
from tasks import data_folder

ROOT = Path(cli.__file__).parents[1]
SAMPLE = data_folder("sample")
# stem of the prediction file -> task, stem of the data file, label, header
FILES = {
    "sst": ("sst", "ids-sst", "sentiment", "id \t Predicted_Sentiment "),
    "para": ("qqp", "quora", "is_duplicate", "id \t Predicted_Is_Paraphrase "),
    "sts": ("sts", "sts", "similarity", "id \t Predicted_Similiary "),
}
STUDENT = {"dev": "dev", "test": "test-student"}


def table(stem: str, split: str, folder: Path = SAMPLE) -> list[dict[str, str]]:
    with open(folder / f"{stem}-{STUDENT[split]}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def predictions(run: Path, stem: str, split: str) -> list[list[str]]:
    """[id, value] of each row of a prediction file."""
    lines = (run / "predictions" / f"{stem}-{split}-output.csv").read_text().split("\n")
    assert lines[-1] == ""
    assert all(line.endswith(" ") for line in lines[:-1])
    return [line[:-1].split(" , ") for line in lines[1:-1]]


def prediction_bytes(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "predictions").glob("*.csv")}


def metrics(run: Path) -> dict[str, Any]:
    return json.loads((run / "metrics.json").read_text())


def config(run: Path) -> dict[str, Any]:
    return json.loads((run / "config.json").read_text())


def telemetry(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "telemetry.jsonl").read_text().splitlines()]


def weights(run: Path, file: str = "model") -> dict[str, torch.Tensor]:
    return load_file(run / "best" / f"{file}.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
