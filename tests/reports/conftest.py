"""Finished runs of random scores."""

import pytest
from scored_runs import scored_run


@pytest.fixture
def make_run(tmp_path):
    """`make_run(name, tasks, skill, seed=..., order=None, **settings)` -> its folder."""
    return lambda name, *args, **settings: scored_run(tmp_path / name, *args, **settings)
