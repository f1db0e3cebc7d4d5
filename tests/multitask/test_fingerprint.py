"""Rows of dev and test from which the run `init` may have learnt are noticed."""

import pytest

from common.files import write_json
from multitask.fingerprint import tasks_with_seen_rows
from multitask.settings.config import RunConfig
from tasks.own_task import complete_task

KEYS = {"type": "classification", "text": "text", "label": "y"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("text,y,z\n" + "".join(f"text {n},{n % 2},{n % 3}\n" for n in range(30)))
    return path


def run_of(folder, *tasks):
    """The folder of a run of own tasks, as far as a later run reads it; return its path as text."""
    folder.mkdir()
    settings = {"mode": "multitask", "tasks": [one.to_json() for one in tasks]}
    write_json(folder / "config.json", settings)
    return str(folder)


def seen(run, *tasks):
    config = RunConfig(mode="multitask", tasks=tasks, init=run, encoder="tiny")
    return tasks_with_seen_rows(config)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({}, {}, []),
        ({}, {"name": "b"}, []),
        ({}, {"train": "other"}, []),
        ({}, {"group": "z"}, ["a"]),
        ({}, {"label": "z"}, []),
        ({"dev": "other"}, {}, ["a"]),
        ({}, {"dev": "other"}, []),
        ({}, {"train": "other", "dev": "file"}, ["a"]),
        ({"test": "other"}, {"test": "other"}, []),
        ({"test": "other"}, {}, ["a"]),
        (None, {}, []),
    ],
)
def test_a_file_that_is_split_otherwise_is_noticed(before, now, expected, file, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(file.read_text().replace("text ", "another "))
    places = {"file": str(file), "other": str(other)}

    def own(change):
        keys = {"name": "a", "train": "file", **KEYS, **change}
        return complete_task({key: places.get(str(one), one) for key, one in keys.items()})

    run = run_of(tmp_path / "run", *([] if before is None else [own(before)]))
    assert seen(run, own(now)) == expected
