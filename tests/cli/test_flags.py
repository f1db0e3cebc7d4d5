"""Flags: help, choices, and wrong values answered in one line with exit status 2."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import cli
from common.settings import hints_of, names_of
from multitask.config import RunConfig
from multitask.regularizers import Smart
from pretrain.objectives import SuperLoss
from tasks import TASKS

ROOT = Path(cli.__file__).parents[1]
SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny")
ALL = ("--mode", "multitask", "--encoder", "tiny")
OF_TASKS = ("single", "multitask", "pareto")
TRAINING = (*OF_TASKS, "pretrain")
FLAGS_OF = {  # whose modes' complete help shows them
    "--sampling --schedule --first-task --batches-per-step": ("multitask", "pareto"),
    "--pcgrad --preference --gradients --smart-weight --scl-weight": ("single", "multitask"),
    "--combiner --sst-head --qqp-head --qqp-loss --sts-head --sts-activation": OF_TASKS,
    "--per-class --config --preset --resume --micro-batch --keep": TRAINING,
    "--objective": ("single", "multitask", "pretrain"),
    "--protocol --shots --drop-leaks --classes": (*TRAINING, "probe", "bilstm"),
    "--pair --init": (*TRAINING, "probe"),
    "--use": (*TRAINING, "probe", "bilstm", "predict", "demo", "export"),
    "--seed": (*TRAINING, "ensemble", "probe", "bilstm"),
    "--tasks": ("multitask", "pareto", "pretrain", "bilstm", "evaluate", "predict", "download"),
    "--input": ("encode", "predict", "mine", "similar", "demo"),
    "--run": ("predict", "export", "demo", "mine", "similar"),
    "--linear --device": (*TRAINING, "encode", "probe", "predict", "mine", "similar", "demo"),
    "--overwrite": (
        *(*TRAINING, "encode", "ensemble", "evaluate", "probe", "predict", "mine", "export"),
        "download",
    ),
    "--preferences": ("pareto",),
    "--projection-head --hard-top-k": ("pretrain",),
    "--probabilities": ("predict",),
    "--gold --zip": ("evaluate",),
    "--table --rows --seeds": ("reproduce",),
}

COMMON = {  # shown by --help, too
    "--sampling": ("multitask", "pareto"),
    "--combiner": OF_TASKS,
    "--pcgrad": ("single", "multitask"),
    "--task --data --limit --encoder --epochs --lr --seed --output --dry-run --resume": TRAINING,
}
RARE = "--smart-weight --scl-weight --cones --warmup --hard-top-k --shots --sst-head --verbose"

# Choices: those of settings, which load no torch, and what there is


def choices(settings, name):
    return names_of(hints_of(settings)[name])


def test_choices_equal_the_registries():
    from losses.super_loss import VARIANTS
    from minbert.batching import NOISE_PLACES
    from minbert.bi_encoder import PRECISIONS
    from minbert.config import LINEARS
    from minbert.pooling import POOLINGS
    from tasks import TASK_NAMES
    from tasks.built_in import QQP_HEADS, QQP_LOSSES, SST_HEADS, STS_HEADS
    from tasks.heads import ACTIVATIONS
    from tasks.metrics import METRICS

    assert choices(RunConfig, "select_by") == tuple(METRICS)
    assert set(choices(RunConfig, "pooling")) == set(POOLINGS)
    assert set(choices(RunConfig, "precision")) == set(PRECISIONS)
    assert set(choices(RunConfig, "linear")) == {"auto", *LINEARS}
    assert choices(Smart, "place") == NOISE_PLACES
    assert choices(SuperLoss, "super_loss") == VARIANTS
    assert set(TASKS) == set(TASK_NAMES)
    assert set(choices(TASKS["qqp"], "loss")) == set(QQP_LOSSES)
    for name, heads in (("sst", SST_HEADS), ("qqp", QQP_HEADS), ("sts", STS_HEADS)):
        assert set(choices(TASKS[name], "head")) == set(heads)
    assert set(choices(TASKS["sts"], "activation")) == set(ACTIVATIONS)


def test_default_options_and_objectives_are_the_tasks_own():
    from tasks import build_task

    for name, task in TASKS.items():
        given = {option: value for option, value in task().values().items() if value is not None}
        plain, same = build_task(name), build_task(name, **given)
        assert repr(plain.build_head(4)) == repr(same.build_head(4))
        assert (plain.objectives, plain.vectors) == (task().objectives, task().vectors)
        for loss in choices(task, "loss") if "loss" in task.by_key() else ():
            assert build_task(name, loss=loss).objectives == task(loss=loss).objectives


def test_pairs_are_those_of_glue():
    from tasks import PAIRS, built_in

    with_pairs = [name for name, task in TASKS.items() if "pair" in task.by_key()]
    assert all(choices(TASKS[name], "pair") == built_in.PAIR_OPTIONS for name in with_pairs)
    assert PAIRS == ("qqp", "mrpc", "rte", "qnli", "mnli", "afqmc", "ocnli", "bustm")
    assert set(PAIRS) == set(with_pairs)


# Help


def has(text, flag):
    """Whether a flag is described there, by itself or beside another spelling of it."""
    described = [line for line in text.splitlines() if line.startswith("  -")]
    return any(flag in line.replace(",", " ").split() for line in described)


def test_help_without_a_mode_lists_the_modes(run):
    found = run("--help")
    assert (found.returncode, found.stderr) == (0, "")
    for mode in cli.MODES:
        assert f"--mode {mode}" in found.stdout


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", cli.MODES)
def test_complete_help_of_a_mode_shows_its_flags_only(mode, order, run):
    parts = [["--mode", mode], ["--help-all"]]
    found = run(*parts[order], *parts[1 - order])
    assert (found.returncode, found.stderr) == (0, "")
    for flags_, modes in FLAGS_OF.items():
        for flag in flags_.split():
            assert has(found.stdout, flag) == (mode in modes), flag


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", TRAINING)
def test_help_after_a_mode_shows_its_common_flags(mode, order, run):
    parts = [["--mode", mode], ["--help"]]
    found = run(*parts[order], *parts[1 - order])
    assert (found.returncode, found.stderr) == (0, "")
    assert "--help-all " in found.stdout
    for flags_, modes in COMMON.items():
        for flag in flags_.split():
            assert has(found.stdout, flag) == (mode in modes), flag
    assert not [flag for flag in RARE.split() if has(found.stdout, flag)]
    everything = run("--mode", mode, "--help-all").stdout.split()
    assert {word for word in found.stdout.split() if word.startswith("--")} <= set(everything)


@pytest.mark.parametrize("mode", cli.MODES)
def test_help_shows_what_is_required(mode, run):
    parser = cli.Parser()
    parser.everything = False
    importlib.import_module(f"cli.{mode}").add_flags(parser)
    required = [one.option_strings[-1] for one in parser._actions if one.required]
    assert (mode == "predict") <= ("--run" in required)
    shown = run("--mode", mode, "--help").stdout
    assert all(has(shown, flag) for flag in required)


def test_help_wrong_flags_and_the_table_of_runs_import_no_torch():
    commands = [
        ["--help"],
        *[["--mode", mode, "--help"] for mode in cli.MODES],
        *[["--mode", mode, "--help-all"] for mode in TRAINING],
        [*ALL, "--lr", "x"],
        [*ALL, "--tasks", "sst", "sst"],
        [*ALL, "--resume", "--overwrite"],
        ["--mode", "runs", "--root", "docs"],
    ]
    code = (
        "import sys, cli\n"
        f"for argv in {commands}:\n"
        "    try: cli.main(argv)\n"
        "    except SystemExit: pass\n"
        "    if 'torch' in sys.modules: sys.exit(f'{argv} imported torch')"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


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


def test_the_real_process_refuses_in_one_line(process):
    found = process(*SST, "--lr", "0")
    assert (found.returncode, found.stdout) == (2, "")
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize("mode", ["encode", "pareto", "compare", "reproduce"])
def test_several_processes_only_train(mode, refused, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    line = refused(2, "--mode", mode)
    assert f"--mode {mode}: expected one process, found 2 (torchrun)" in line
