"""Help: which flags each mode shows, and the choices of their values."""

import subprocess
import sys

import pytest
from run_files import ROOT

import cli

TRAINING = ("single", "multitask", "pretrain")
COMMON = "--data --limit --encoder --init --epochs --lr --seed --output --use --resume"
RARE = "--smart-weight --scl-weight --warmup --shots --sst-head --checkpoint-every"


def flags_in(text):
    """The flags that a help text describes, other spellings included."""
    lines = [line for line in text.splitlines() if line.startswith("  -")]
    words = (word for line in lines for word in line.replace(",", " ").split())
    return {word for word in words if word.startswith("-")}


@pytest.mark.parametrize("flags", [[], ["--help"], ["--mode", "--help"]])
def test_help_without_a_mode_lists_the_modes_in_groups(run_ok, flags):
    lines = run_ok(*flags).stdout.splitlines()
    for group, modes in cli.GROUPS.items():
        begin = lines.index(f"{group}:") + 1
        found = [line.split()[1] for line in lines[begin : begin + len(modes)]]
        assert found == list(modes)


@pytest.mark.parametrize("mode", cli.MODES)
def test_short_help_of_a_mode_shows_the_flags_it_requires(mode, run_ok):
    complete = flags_in(run_ok("--mode", mode, "--help-all").stdout)
    parser = cli.Parser(mode, everything=False)
    cli.module_of(mode).add_flags(parser)
    required = {one.option_strings[-1] for one in parser._actions if one.required}
    assert (mode == "predict") <= ("--run" in required)
    assert required <= flags_in(run_ok("--mode", mode, "--help").stdout) <= complete


@pytest.mark.parametrize("mode", TRAINING)
def test_short_help_of_training_shows_common_flags_in_any_order_of_flags(mode):
    # In a process of its own: help also lists the methods that other tests define.
    command = [sys.executable, "run.py", "--help", "--mode", mode]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert len(text.splitlines()) <= 40
    swapped = [*command[:2], "--mode", mode, "--help"]
    assert text == subprocess.check_output(swapped, cwd=ROOT, text=True)
    assert "--help-all " in text
    assert flags_in(text) & {*COMMON.split(), *RARE.split()} == {*COMMON.split()}


def test_help_does_not_execute_torch():
    code = "import cli, sys; cli.main(sys.argv[1:]); assert 'torch' not in sys.modules"
    command = [sys.executable, "-c", code, "--mode", "multitask", "--help"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
