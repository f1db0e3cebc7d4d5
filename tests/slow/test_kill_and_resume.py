"""Three kills of `kill_and_resume.py`; thirty are its own default."""

import pytest
from kill_and_resume import main


@pytest.mark.slow
def test_killed_runs_end_with_the_bytes_of_the_undisturbed_one(capsys):
    assert main(["--kills", "3"]) == 0
    assert "3 of 3 killed runs end with the bytes" in capsys.readouterr().out
