"""Flags: help, choices, and wrong values answered in one line with exit status 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cli
from cli import flags

ROOT = Path(cli.__file__).parents[1]
SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny")
ALL = ("--mode", "multitask", "--encoder", "tiny")


# Choices


def test_plain_choices_equal_the_registries():
    from minbert.bi_encoder import PRECISIONS
    from minbert.linear import LINEARS
    from minbert.pooling import POOLINGS
    from multitask.combiners import COMBINERS
    from multitask.sampling import SAMPLERS

    assert set(flags.POOLINGS) == set(POOLINGS)
    assert set(flags.PRECISIONS) == set(PRECISIONS)
    assert set(flags.LINEARS) == {"auto", *LINEARS}
    assert set(flags.SAMPLINGS) == set(SAMPLERS)
    assert set(flags.COMBINERS) == set(COMBINERS)


def test_head_choices_equal_the_registries():
    from tasks import qqp, sst, sts
    from tasks.heads import ACTIVATIONS

    assert {name: set(options["head"]) for name, options in flags.TASK_OPTIONS.items()} == {
        name: set(module.HEADS) for name, module in (("sst", sst), ("qqp", qqp), ("sts", sts))
    }
    assert set(flags.TASK_OPTIONS["sts"]["activation"]) == set(ACTIVATIONS)


def test_the_first_choice_is_the_tasks_own_default():
    from tasks import build_task

    for task, options in flags.TASK_OPTIONS.items():
        first = {option: choices[0] for option, choices in options.items()}
        heads = [build_task(task, **given).build_head(4) for given in ({}, first)]
        assert repr(heads[0]) == repr(heads[1])


def test_every_task_name_builds():
    from tasks import TASK_NAMES, build_task

    assert [build_task(name).name for name in TASK_NAMES] == list(TASK_NAMES)
    assert set(flags.TASK_OPTIONS) == set(TASK_NAMES)


# Help


def test_help_alone_lists_the_modes(run):
    found = run("--help")
    assert (found.returncode, found.stderr) == (0, "")
    for mode in cli.MODES:
        assert f"--mode {mode}" in found.stdout


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", cli.MODES)
def test_help_after_a_mode_shows_its_flags_only(mode, order, run):
    parts = [["--mode", mode], ["--help"]]
    found = run(*parts[order], *parts[1 - order])
    assert (found.returncode, found.stderr) == (0, "")
    multi = ("--tasks", "--sampling", "--combiner", "--pcgrad", "--batches-per-step")
    assert all((f"{flag} " in found.stdout) == (mode == "multitask") for flag in multi)
    assert ("--task " in found.stdout) == (mode == "single")
    for flag in ("--data", "--init", "--resume", "--seed", "--limit"):
        assert (flag in found.stdout) == (mode != "encode")
    assert ("--input" in found.stdout) == (mode == "encode")
    for flag in ("--encoder", "--pooling", "--overwrite", "--linear", "--device", "--verbose"):
        assert flag in found.stdout


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        *[["--mode", mode, "--help"] for mode in cli.MODES],
        [*ALL, "--lr", "x"],
        [*ALL, "--tasks", "sst", "sst"],
        [*ALL, "--resume", "--overwrite"],
    ],
    ids=" ".join,
)
def test_help_and_wrong_flags_import_no_torch(argv):
    code = (
        "import sys, cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "sys.exit('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, *argv]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def test_an_interrupt_during_the_start_is_one_line_and_imports_no_torch():
    """Importing torch again after an interrupted import of it ends in a traceback."""
    code = (
        "import sys, cli, cli.single\n"
        "def stop(*args): raise KeyboardInterrupt\n"
        "cli.single.main = stop\n"
        "sys.exit(1 if 'torch' in sys.modules else cli.main(sys.argv[1:]))"
    )
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *SST],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    lines = found.stderr.splitlines()
    assert found.returncode == 130
    assert lines[-1].startswith("run.py: interrupted")
    assert not any(line.endswith(" torch") for line in lines)


# Wrong flags and values


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], "--mode: expected one of single, multitask"),
        (["--mode"], "--mode"),
        (["--mode", "nope"], "'single', 'multitask'"),
        (["--mode", "single"], "--task"),
        (["--mode", "single", "--task", "nope"], "'sst', 'qqp', 'sts'"),
        ([*ALL, "--tasks"], "--tasks"),
        ([*ALL, "--tasks", "sst", "nope"], "'nope'"),
        ([*ALL, "--tasks", "sst", "qqp", "sst"], "expected each task once, found sst twice"),
        ([*ALL, "--task", "sst"], "--task"),
        ([*ALL, "--pcgrad", "--combiner", "sum"], "expected one combiner"),
        ([*ALL, "--freeze-encoder", "--pcgrad"], "found --freeze-encoder"),
        ([*ALL, "--freeze-encoder", "--combiner", "pcgrad"], "found --freeze-encoder"),
        ([*SST, "--resume", "--overwrite"], "expected at most one"),
        ([*SST, "--sampling", "annealed"], "--sampling"),
        ([*SST, "stray"], "stray"),
        ([*SST, "--output"], "--output"),
        ([*SST, "--pooling", "nope"], "'mean', 'cls', 'max'"),
        ([*SST, "--precision", "fp16"], "'fp32', 'bf16'"),
        ([*SST, "--sst-head", "nope"], "'hidden', 'softmax'"),
        ([*SST, "--sts-head", "cosine"], "--sts-head: expected sts among the tasks, found sst"),
        ([*SST, "--sts-head", "hidden"], "--sts-head"),
        ([*SST, "--sts-activation", "none"], "--sts-activation"),
        ([*ALL, "--tasks", "sst", "sts", "--qqp-head", "concat"], "--qqp-head"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_says_what_was_expected(argv, expected, refused, tmp_path):
    output = [] if "--output" in argv else ["--output", tmp_path / "run"]
    assert expected in refused(2, *argv, *output)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("--epochs", ["0", "-1", "1.5", "x", "", "nan", "inf"]),
        ("--steps-per-epoch", ["0", "x"]),
        ("--batch-size", ["0", "x", "1e3"]),
        ("--limit", ["0", "-5", "x"]),
        ("--patience", ["0", "x"]),
        ("--seed", ["-1", "4294967296", "x", "1.0"]),
        ("--lr", ["0", "-1", "nan", "inf", "-inf", "x", ""]),
        ("--head-lr", ["0", "-1", "nan", "inf", "x"]),
        ("--weight-decay", ["-0.1", "nan", "inf", "x"]),
        ("--warmup", ["-0.1", "1.1", "nan", "x"]),
        ("--clip", ["0", "-1", "nan", "inf", "x"]),
    ],
)
def test_a_wrong_number_is_shown_with_what_was_expected(flag, values, refused, tmp_path):
    kind = (
        "a number"
        if flag[2:] in ("lr", "head-lr", "weight-decay", "warmup", "clip")
        else ("a whole number")
    )
    for value in values:
        line = refused(2, *SST, "--output", tmp_path / "run", f"{flag}={value}")
        assert f"{flag}: expected {kind}" in line
        assert f"found {value!r}" in line
    assert not (tmp_path / "run").exists()


def test_the_largest_seed_is_told_exactly(refused):
    assert "4294967295" in refused(2, *SST, "--seed", "4294967296")


@pytest.mark.parametrize("argv", [["--epoch", "3"], ["--ep", "3"], ["--freeze"], ["--over"]])
def test_flags_cannot_be_abbreviated(argv, refused):
    assert argv[0] in refused(2, *SST, *argv)


def test_a_wrong_device_is_a_wrong_value(refused, tmp_path):
    for device in ("gpu", "", "meta", "cuda:99"):
        line = refused(2, *SST, "--output", tmp_path / "run", "--device", device)
        assert "--device: expected auto, cpu" in line


@pytest.mark.parametrize("argv", [["--mode", "nope"], [*SST, "--lr", "0"], [*ALL, "--tasks", "x"]])
def test_the_real_process_does_the_same(argv, process):
    found = process(*argv)
    assert found.returncode == 2
    assert found.stdout == ""
    assert len(found.stderr.splitlines()) == 1
