"""The start-up benchmark runs what it says."""

import sys

import pytest

from benchmarks import startup


def test_a_command_that_fails_is_told():
    with pytest.raises(RuntimeError, match="no_such_script"):
        startup.seconds_of([sys.executable, "-m", "benchmarks.no_such_script"])


@pytest.mark.slow
def test_every_side_ends_well(tmp_path):
    for sides in startup.commands(tmp_path).values():
        assert len(sides) == 2
        for command in sides.values():
            assert startup.seconds_of(command) > 0
    assert (tmp_path / "sentence.npy").exists()
