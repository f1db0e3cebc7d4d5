"""Finished runs of random scores, and the files of a course."""

import pytest
from course_files import write_data
from scored_runs import scored_run


@pytest.fixture
def make_run(tmp_path):
    """`make_run(name, tasks, skill, seed=..., order=None, **settings)` -> its folder."""
    return lambda name, *args, **settings: scored_run(tmp_path / name, *args, **settings)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """The folder of a course's files, with labels in the test files, too."""
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder
