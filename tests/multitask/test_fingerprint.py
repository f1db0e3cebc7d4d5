"""Rows of dev and test from which the run `init` may have learnt are noticed."""

import pytest

from common.files import write_json
from multitask.fingerprint import tasks_with_seen_rows
from multitask.settings.config import RunConfig
from tasks.own_tasks import task

KEYS = "type=classification,text=text,label=y"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("text,y,z\n" + "".join(f"text {n},{n % 2},{n % 3}\n" for n in range(30)))
    return path


def run_of(folder, *tasks):
    """The folder of a run of own tasks, as far as a later run reads it; return its path as text."""
    own = [task(one) for one in tasks]
    folder.mkdir()
    settings = {"mode": "multitask", "tasks": [one.to_json() for one in own]}
    write_json(folder / "config.json", settings)
    return str(folder)


def seen(run, *tasks):
    config = RunConfig(mode="multitask", tasks=[*map(task, tasks)], init=run, encoder="tiny")
    return tasks_with_seen_rows(config)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (["a={file}:{keys}"], ["a={file}:{keys}"], []),
        (["a={file}:{keys}"], ["b={file}:{keys}"], []),
        (["a={file}:{keys}"], ["a={other}:{keys}"], []),
        (["a={file}:{keys}"], ["a={file}:{keys},group=z"], ["a"]),
        (["a={file}:{keys}"], ["a={file}:type=classification,text=text,label=z"], []),
        (["a={file}:{keys},dev={other}"], ["a={file}:{keys}"], ["a"]),
        (["a={file}:{keys}"], ["a={file}:{keys},dev={other}"], []),
        (["a={file}:{keys}"], ["a={other}:{keys},dev={file}"], ["a"]),
        (["a={file}:{keys},test={other}"], ["a={file}:{keys},test={other}"], []),
        (["a={file}:{keys},test={other}"], ["a={file}:{keys}"], ["a"]),
        ([], ["a={file}:{keys}"], []),
    ],
)
def test_a_file_that_is_split_otherwise_is_noticed(before, now, expected, file, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(file.read_text().replace("text ", "another "))
    names = {"file": file, "other": other, "keys": KEYS}
    run = run_of(tmp_path / "run", *(one.format(**names) for one in before))
    assert seen(run, *(one.format(**names) for one in now)) == expected
