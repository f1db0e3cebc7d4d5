"""What a training run prints: what it trains on, where it writes, and the commands that follow."""

import io
import shlex
import sys

RUN = ("--mode", "multitask", "--tasks", "sst", "sts", "--encoder", "tiny", "--epochs", "1")
SHORT = (*RUN, "--steps-per-epoch", "1", "--limit", "16", "--dev-limit", "20")


def test_the_first_lines_say_what_is_trained_and_where_it_is_written(run_ok, cwd):
    lines = run_ok(*SHORT, "--pcgrad", "--output", "my run").stdout.splitlines()
    assert lines[0] == "run folder: my run"
    assert lines[1].startswith("precision: ")
    assert lines[2:4] == [f"{task}: train 16, dev 20, test 300 examples" for task in ("sst", "sts")]
    assert "trains tiny on sst and sts, on cpu: 1 epoch, 1 step in all" in lines
    assert any(line.startswith("1 step: ") for line in lines)
    assert not any("1 steps" in line for line in lines)


def test_the_last_line_is_a_command_that_runs_as_printed(tmp_path, monkeypatch, run_ok):
    monkeypatch.chdir(tmp_path)
    done = run_ok(*SHORT, "--output", "my run's")
    *_, after = done.stdout.partition("\nnext: ")
    words = shlex.split(after)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a film\n")))
    assert "sst" in run_ok(*words[words.index("--mode") :]).stdout
