"""Flags: help, choices, and wrong values answered in one line with exit status 2."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import cli
from common.settings import hints_of, names_of
from multitask.config import RunConfig
from multitask.regularizers.settings import Smart
from pretrain.objectives import SuperLoss
from tasks import TASKS

ROOT = Path(cli.__file__).parents[1]
SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny")
ALL = ("--mode", "multitask", "--encoder", "tiny")
FIRST = (*ALL, "--schedule", "first-then-joint")
ALONE = (*ALL, "--schedule", "individual")
EPO = (*ALL, "--combiner", "epo", "--preference")
ONE = (*ALL, "--tasks", "qqp", "--qqp-loss", "with-contrastive")
QQP2 = ("--mode", "single", "--task", "qqp", "--encoder", "tiny", "--qqp-loss", "with-contrastive")


OF_TASKS = ("single", "multitask", "pareto")
TRAINING = (*OF_TASKS, "pretrain")
FLAGS_OF = {  # whose modes' complete help shows them
    "--sampling --schedule --first-task --batches-per-step": ("multitask", "pareto"),
    "--preferences": ("pareto",),
    "--pcgrad --preference --gradients --smart-weight": ("single", "multitask"),
    "--scl-weight": ("single", "multitask"),
    "--per-class": TRAINING,
    "--objective": ("single", "multitask", "pretrain"),
    "--combiner --sst-head": OF_TASKS,
    "--protocol --shots --drop-leaks": (*TRAINING, "probe", "bilstm"),
    "--pair": (*TRAINING, "probe"),
    "--classes": (*TRAINING, "probe", "bilstm"),
    "--qqp-head --qqp-loss --sts-head --sts-activation": OF_TASKS,
    "--config --preset": TRAINING,
    "--use": (*TRAINING, "probe", "bilstm", "predict", "demo", "export"),
    "--vectors": ("bilstm", "reproduce"),
    "--units": ("bilstm",),
    "--projection-head --hard-top-k": ("pretrain",),
    "--init": (*TRAINING, "probe"),
    "--resume --micro-batch --keep": TRAINING,
    "--source --revision": ("download",),
    "--run": ("predict", "export", "demo", "mine", "similar"),
    "--query": ("similar",),
    "--threshold": ("mine",),
    "--format": ("export",),
    "--host --port": ("demo",),
    "--probabilities": ("predict",),
    "--limit": (*TRAINING, "reproduce", "probe", "bilstm"),
    "--data": (*TRAINING, "reproduce", "probe", "bilstm", "tasks", "evaluate"),
    "--seed": (*TRAINING, "ensemble", "probe", "bilstm"),
    "--task": (*TRAINING, "probe", "bilstm", "tasks"),
    "--tasks": ("multitask", "pareto", "pretrain", "bilstm", "evaluate", "predict", "download"),
    "--examples": ("tasks",),
    "--input": ("encode", "predict", "mine", "similar", "demo"),
    "--normalize": ("encode",),
    "--encoder": (*TRAINING, "encode", "reproduce", "probe", "mine", "similar"),
    "--verbose": (*TRAINING, "encode"),
    "--linear --device": (*TRAINING, "encode", "probe", "predict", "mine", "similar", "demo"),
    "--pooling": (*TRAINING, "encode", "probe", "bilstm", "mine", "similar"),
    "--overwrite": (
        *(*TRAINING, "encode", "ensemble", "evaluate", "probe", "predict", "mine", "export"),
        "download",
    ),
    "--method": ("ensemble",),
    "--gold --zip": ("evaluate",),
    "--embeddings": ("compare",),
    "--root": ("runs",),
    "--table --rows --seeds": ("reproduce",),
}

COMMON = {  # shown by --help, too
    "--sampling": ("multitask", "pareto"),
    "--combiner": OF_TASKS,
    "--pcgrad": ("single", "multitask"),
    "--data --limit --encoder --epochs --batch-size --lr --seed --output": TRAINING,
    "--dry-run --resume --overwrite --precision": TRAINING,
    "--task": TRAINING,
}
RARE = "--smart-weight --scl-weight --cones --warmup --hard-top-k --shots --sst-head --verbose"

# Choices: those of settings, which load no torch, and what there is


def choices(settings, name):
    return names_of(hints_of(settings)[name])


def test_choices_equal_the_registries():
    from losses import smart
    from losses.super_loss import VARIANTS
    from minbert.arithmetic import LINEARS
    from minbert.batching import NOISE_PLACES
    from minbert.bi_encoder import PRECISIONS
    from minbert.pooling import POOLINGS
    from tasks.metrics import METRICS

    assert choices(RunConfig, "select_by") == tuple(METRICS)
    assert set(choices(RunConfig, "pooling")) == set(POOLINGS)
    assert set(choices(RunConfig, "precision")) == set(PRECISIONS)
    assert set(choices(RunConfig, "linear")) == {"auto", *LINEARS}
    assert (choices(Smart, "norm"), choices(Smart, "variant")) == (smart.NORMS, smart.VARIANTS)
    assert choices(Smart, "place") == NOISE_PLACES
    assert choices(SuperLoss, "super_loss") == VARIANTS


def test_objectives_are_the_tasks_own():
    from tasks import build_task

    for name, task in TASKS.items():
        assert build_task(name).objectives == task().objectives
        for loss in choices(task, "loss") if "loss" in task.by_key() else ():
            assert build_task(name, loss=loss).objectives == task(loss=loss).objectives


def test_choices_of_tasks_equal_the_registries():
    from tasks.cs224n import QQP_HEADS, QQP_LOSSES, SST_HEADS, STS_HEADS
    from tasks.heads import ACTIVATIONS

    assert set(choices(TASKS["qqp"], "loss")) == set(QQP_LOSSES)
    for name, heads in (("sst", SST_HEADS), ("qqp", QQP_HEADS), ("sts", STS_HEADS)):
        assert set(choices(TASKS[name], "head")) == set(heads)
    assert set(choices(TASKS["sts"], "activation")) == set(ACTIVATIONS)


def test_the_default_options_are_the_tasks_own():
    from tasks import build_task

    for name, task in TASKS.items():
        given = {option: value for option, value in task().values().items() if value is not None}
        plain, same = build_task(name), build_task(name, **given)
        assert repr(plain.build_head(4)) == repr(same.build_head(4))
        assert (plain.objectives, plain.vectors) == (same.objectives, task().vectors)


def test_every_task_name_builds():
    from tasks import TASK_NAMES, build_task

    assert [build_task(name).name for name in TASK_NAMES] == list(TASK_NAMES)
    assert set(TASKS) == set(TASK_NAMES)


def test_pairs_are_those_of_glue():
    from tasks import PAIRS, catalog_tasks

    with_pairs = [name for name, task in TASKS.items() if "pair" in task.by_key()]
    assert all(choices(TASKS[name], "pair") == catalog_tasks.PAIR_OPTIONS for name in with_pairs)
    assert PAIRS == ("qqp", "mrpc", "rte", "qnli", "mnli", "afqmc", "ocnli", "bustm")
    assert set(PAIRS) == set(with_pairs)


# Help


def has(text, flag):
    """Whether a flag is described there, by itself or beside another spelling of it."""
    described = [line for line in text.splitlines() if line.startswith("  -")]
    return any(flag in line.replace(",", " ").split() for line in described)


def test_help_alone_lists_the_modes(run):
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


def test_a_mode_with_one_task_wants_one(refused):
    assert "--task: expected one, found none" in refused(2, "--mode", "single")
    assert "--task: expected one, found none" in refused(2, "--mode", "probe")


def test_help_of_pretraining_shows_what_it_wants_and_its_own_defaults(run):
    shown = " ".join(run("--mode", "pretrain", "--help").stdout.split())
    assert "--objective " in shown
    for one in ("epochs (default: 1)", "per batch (default: 64)", "encoder (default: 3e-05)"):
        assert one in shown


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        *[["--mode", mode, "--help"] for mode in cli.MODES],
        *[["--mode", mode, "--help-all"] for mode in TRAINING],
        [*ALL, "--lr", "x"],
        [*ALL, "--tasks", "sst", "sst"],
        [*ALL, "--resume", "--overwrite"],
        ["--mode", "runs", "--root", "docs"],
    ],
    ids=" ".join,
)
def test_help_wrong_flags_and_the_table_of_runs_import_no_torch(argv):
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
        (["--mode", "nope"], "--mode: expected one of single, multitask"),
        (["--mode", "single"], "--task"),
        (["--mode", "single", "--task", "nope"], "expected one of sst, qqp, sts, "),
        ([*ALL, "--tasks"], "--tasks"),
        ([*ALL, "--tasks", "sst", "nope"], "'nope'"),
        ([*ALL, "--tasks", "sst", "qqp", "sst"], "expected each task once, found sst twice"),
        ([*ALL, "--tasks", "sst", "--task", "sst"], "--tasks: expected each task once"),
        ([*ALL, "--pcgrad", "--combiner", "sum"], "expected one combiner"),
        (
            [*ALL, "--freeze-encoder", "--pcgrad"],
            "--combiner pcgrad: expected a shared encoder, found",
        ),
        ([*ALL, "--freeze-encoder", "--combiner", "mgda"], "found freeze_encoder"),
        ([*ALL, "--sampling", "nope"], "--sampling: expected one of round-robin, hybrid, annealed"),
        (
            [*ALL, "--schedule", "nope"],
            "--schedule: expected one of joint, individual, first-then-joint",
        ),
        ([*ALL, "--combiner", "nope"], "--combiner: expected one of sum, pcgrad, epo"),
        ([*ALL, "--gradients", "nope"], "--gradients: expected one of parameters, representation"),
        ([*SST, "--pcgrad"], "--combiner pcgrad: expected two objectives or more, found sst"),
        (
            [*ALL, "--tasks", "sts", "--combiner", "mgda"],
            "expected two objectives or more, found sts",
        ),
        ([*ALL, "--temperature", "2"], "--temperature: expected sampling temperature, found"),
        ([*ALL, "--size-cap", "9"], "--size-cap: expected sampling temperature, found"),
        ([*ALL, "--sampling", "temperature", "--temperature", "0.5"], "expected a number from 1"),
        ([*ALL, "--first-task", "sst"], "--first-task: expected sampling hybrid or schedule"),
        ([*ALL, "--first-epochs", "1"], "--first-epochs: expected sampling hybrid or schedule"),
        (
            [*FIRST, "--first-task", "cola"],
            "--first-task: expected one of sst, qqp, sts, found 'co",
        ),
        ([*FIRST, "--first-epochs", "3"], "--first-epochs: expected fewer than epochs 3, found 3"),
        ([*FIRST, "--epochs", "1"], "--first-epochs: expected fewer than epochs 1, found 1"),
        (
            [*FIRST, "--sampling", "hybrid"],
            "--sampling hybrid and --schedule first-then-joint: exp",
        ),
        ([*FIRST, "--tasks", "sst"], "--schedule first-then-joint: expected two tasks or mor"),
        ([*ALL, "--sampling", "hybrid", "--tasks", "sts"], "expected two tasks or more, found sts"),
        ([*ALONE, "--pcgrad"], "found schedule individual with batches_per_step 1"),
        ([*ALL, "--pcgrad", "--batches-per-step", "1"], "found schedule joint with batches_pe"),
        (
            [*ALONE, "--batches-per-step", "2"],
            "--batches-per-step: expected 1 with schedule individual",
        ),
        ([*ALL, "--cones", "3"], "--cones: expected combiner pareto-mtl, found 3"),
        ([*ALL, "--preference", "1", "1", "1"], "--preference: expected combiner epo or linear or"),
        ([*EPO, "0.5", "0.5"], "expected 3 numbers, for sst, qqp, sts, found 2"),
        ([*EPO, "1", "0", "2"], "expected numbers above 0 for combiner epo, found 1 0 2"),
        ([*EPO, "1", "-1", "2"], "expected a number from 0"),
        ([*EPO, "1", "nan", "2"], "expected a number from 0"),
        (
            [*ALL, "--combiner", "linear", "--preference", "0", "0", "0"],
            "expected a number above 0",
        ),
        (
            [*ALL, "--pcgrad", "--preference", "1", "1", "1"],
            "--preference: expected combiner epo or",
        ),
        ([*ALL, "--gradients", "representation"], "expected one task with several objectives"),
        ([*SST, "--gradients", "representation"], "expected one task with several objectives"),
        (
            [*QQP2, "--gradients", "representation", "--micro-batch", "2"],
            "expected at most one",
        ),
        (
            [*QQP2, "--gradients", "representation", "--freeze-encoder"],
            "expected at most one",
        ),
        (
            [*ALL, "--qqp-loss", "nope"],
            "--qqp-loss: expected one of cross-entropy, with-contrastive",
        ),
        ([*SST, "--resume", "--overwrite"], "expected at most one"),
        ([*SST, "--keep", "last", "--patience", "2"], "expected at most one"),
        ([*ONE, "--gradients", "representation", "--batches-per-step", "2"], "expected --batches-"),
        (["--mode", "pareto", "--resume"], "always resumes"),
        (["--mode", "pareto", "--dry-run"], "--dry-run: expected --mode multitask"),
        ([*SST, "--sampling", "annealed"], "--sampling"),
        ([*SST, "stray"], "stray"),
        ([*SST, "--output"], "--output"),
        ([*SST, "--pooling", "nope"], "--pooling: expected one of mean, cls, max, found 'nope'"),
        ([*SST, "--precision", "fp16"], "--precision: expected one of fp32, bf16, found 'fp16'"),
        ([*SST, "--sst-head", "nope"], "--sst-head: expected one of hidden, softmax, found 'nope'"),
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
        ("--micro-batch", ["0", "x", "1e3"]),
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
        found = line.partition("found ")[2].removesuffix(" (see --help)")
        assert found == repr(value) or float(found) == float(value) or found == value
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


@pytest.mark.parametrize("mode", ["encode", "pareto", "compare", "reproduce"])
def test_several_processes_only_train(mode, refused, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    line = refused(2, "--mode", mode)
    assert f"--mode {mode}: expected one process, found 2 (torchrun)" in line
