"""50 fuzzed data folders through the command line: a run, or one line and nothing half-written."""

from __future__ import annotations

import itertools

import pytest
from fuzzed_files import sound_tables, tables
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

COLUMNS = {
    "sst": ("id", "sentence", "sentiment"),
    "qqp": ("id", "sentence1", "sentence2", "is_duplicate"),
    "sts": ("id", "sentence1", "sentence2", "similarity"),
}
FILES = {"sst": "ids-sst", "qqp": "quora", "sts": "sts"}
FLAGS = ("--encoder", "tiny", "--epochs", "1", "--steps-per-epoch", "1", "--limit", "4")


@pytest.mark.slow
@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_fuzzed_data_folder(data, run, data_copies):
    folder, out = next(data_copies)
    task = data.draw(st.sampled_from(sorted(COLUMNS)))
    for split in data.draw(st.sampled_from([("train",), ("dev",), ("train", "dev")])):
        file = folder / f"{FILES[task]}-{split}.csv"
        assert file.exists()
        columns = COLUMNS[task]
        file.write_bytes(data.draw(sound_tables(columns) | tables(columns)))
    found = run("--mode", "single", "--task", task, *FLAGS, "--data", folder, "--output", out)
    event(f"status {found.returncode}")
    assert found.returncode in (0, 1)
    if found.returncode:
        *_, told = found.stderr.splitlines()
        assert told.startswith("run.py: ")
        assert "Traceback" not in found.stderr
        assert not (out / "metrics.json").exists()
        assert not list(out.glob("predictions/*"))
    else:
        assert (out / "metrics.json").exists()
    assert not list(out.rglob("*.minbert-*"))


@pytest.fixture
def data_copies(small, tmp_path):
    """A fresh copy of the small data and a folder for a run, again and again."""
    import shutil

    return (
        (shutil.copytree(small, tmp_path / f"data{number}"), tmp_path / f"run{number}")
        for number in itertools.count()
    )
