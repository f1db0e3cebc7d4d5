"""Wrong commands and settings: one line with what was expected, status 2, nothing written.

The rules themselves are tested with `RunConfig`; here are the command line's own, and one example
of each rule that names flags.
"""

import json
import math
import re
from dataclasses import fields
from typing import Any

import pytest
import yaml
from run_files import config, metrics

from cli.settings_flags import takes_several
from common.argument_types import takes_names
from common.errors import SettingsError
from common.settings import accepts, hints_of
from multitask.settings.config import RunConfig
from multitask.settings.methods import owners

BEGINNINGS = {
    "sst": "--mode single --task sst --encoder tiny",
    "at-vectors": "--mode single --task qqp --qqp-loss with-contrastive --gradients representation",
    "all": "--mode multitask --encoder tiny",
    "all-at-vectors": "--mode multitask --tasks qqp --qqp-loss with-contrastive "
    "--gradients representation",
    "first": "--mode multitask --encoder tiny --schedule first-then-joint",
    "pretrain": "--mode pretrain --encoder tiny",
    "superloss": "--mode pretrain --encoder tiny --objective superloss",
    "own-text": "--mode pretrain --encoder tiny --text x --objective",
    "lacon": "--mode single --task sst --encoder tiny --objective lacon --label-terms",
}
MODES_AND_FLAGS = [
    ("--mode nope", "nope: write --mode single, multitask, "),
    ("--mode evalute", "evalute: write --mode evaluate (see --help)"),
    ("multitsk --pcgrad", "multitsk: write --mode multitask (see --help)"),
    ("train", "train: write --mode single, multitask, pretrain, probe or ensemble (see --help)"),
    ("--task sst", "--task: write --mode single, multitask, "),
    ("sst stray", "unrecognized arguments: stray"),
    ("sst --epoch 3", "--epoch"),
    ("sst --batch_size 3", "--batch_size 3; did you mean --batch-size?"),
    ("sst --unheard-of 3", "unrecognized arguments: --unheard-of 3 (see --help)"),
    ("sst --sampling annealed", "unrecognized arguments: --sampling annealed (see --help)"),
    ("sst --tasks sst", "--tasks sst; did you mean --task? (see --help)"),
    ("sst -lr 3", "-lr 3; did you mean --lr? (see --help)"),
    ("sst --epochz 1", "--epochz 1; did you mean --epochs?"),
    ("sst --regularizers x", "unrecognized arguments: --regularizers x (see --help)"),
    ("sst --resume --overwrite", "--resume and overwrite: expected at most one"),
    ("all --pcgrad --combiner sum", "expected one combiner"),
]
VALUES = [
    ("sst --epochs=", "--epochs: expected a whole number from 1 to 1000000, found ''"),
    ("all --limit =3", "limit: expected"),
    ("all --auxiliary nope", "--tasks: expected one of"),
    ("all --limit 3 4", "limit: expected one for all tasks, found several"),
    ("--mode serve --run x --host=", "--host: expected a name or an address such as 127.0.0.1"),
    ("sst --smart-weight sst=1 sst=0", "expected one for sst, found several"),
    ("sst --smart-weight sst=x", "expected a number from 0 to 1000000, found 'x'"),
]
TASKS = [
    ("--mode single", "--task: expected one, found none"),
    ("--mode probe --encoder tiny", "--task: expected one, found none"),
    ("--mode single --task nope", "expected one of sst, qqp, sts, "),
    ("--mode single --task SST", "found 'SST'; did you mean sst? (see --help)"),
    ("--mode single --task ../sst", "expected the name of a task, or an own task NAME=FILE:"),
    ("--mode single --task sst=x.csv:type=similarity", "another name than sst, which is reserved"),
    ("all --tasks sst --task sst", "--tasks: expected each task once"),
    ("sst --sts-head cosine", "--sts-head: expected sts among the tasks, found sst"),
]
MIXING = [
    ("all --schedule individual --batches-per-step 2", "expected 1 with schedule individual"),
    ("first --sampling hybrid", "--sampling hybrid and schedule first-then-joint: exp"),
    ("first --tasks sst", "--schedule first-then-joint: expected two tasks or mor"),
    ("all --combiner linear --preference 0 0 0", "expected at least one number above 0"),
    ("all --gradients representation", "expected one task with several objectives"),
    ("at-vectors --micro-batch 2 --smart-weight 1", "expected two of them at most"),
    ("all-at-vectors --batches-per-step 2", "expected batches_per_step 1, found 2"),
    ("sst --probe-epochs 3", "--probe-epochs: expected fewer than epochs 3, found 3"),
    ("sst --probe-epochs 1 --freeze-encoder", "expected at most one"),
    ("sst --smart-weight 0 --smart-norm l2", "--smart-norm: expected a smart_weight"),
    (
        "sst --smart-weight 1 --smart-variant projected --smart-radius 1e-5 --precision bf16",
        "--smart-radius: expected 0.0039 or more with precision bf16",
    ),
]
OBJECTIVES = [
    ("sst --objective scl --scl-weight 1", "expected a number below 1"),
    ("sst --objective epo --scl-preference 0", "between 0 and 1 for EPO"),
    ("sst --objective ls --freeze-encoder", "--objective ls and freeze_encoder: expected at"),
    ("lacon lcl --label-heads 2", "--label-heads: expected icl among label_terms, found 2"),
    ("lacon ler", "found only ler, which trains no encoder"),
    ("lacon icl --sst-head softmax", "sst: head: expected another objective than lacon"),
    ("sst --objective projection --projection-layers 0", "--projection-layers: expected 1 or more"),
]
PRETRAINING = [
    ("pretrain", "--objective: expected one of simcse, nli"),
    ("pretrain --objective nli --nli x --tasks sst", "--tasks: expected none"),
    ("pretrain --objective pairs --batch-size 1", "--batch-size: expected 2 or more"),
    (
        "pretrain --objective simcse --head-lr 1",
        "--head-lr: expected setting projection",
    ),
    (
        "pretrain --objective simcse --text-column x",
        "--text-column: expected setting text",
    ),
    ("own-text supcon", "--text: expected objective simcse or pairs"),
    ("own-text pairs", "--text-column: expected two"),
    ("own-text simcse --text-column a b", "--text-column: expected one"),
    ("own-text pairs --text-column a a", "--text-column: expected two, found a twice"),
    (
        "pretrain --objective simcse --tasks trec --classes 2",
        "trec: classes: expected an",
    ),
    ("pretrain --objective simcse --drop-leaks", "--drop-leaks: expected an objective of classes"),
    ("pretrain --objective simcse --projection-head linear", "expected an objective of classes"),
    ("superloss --hard-top-k 3 --hard-threshold 0", "--hard-top-k and hard_threshold: expe"),
    ("superloss --hard-after 1", "--hard-after: expected hard_top_k, hard_threshold"),
    ("superloss --hard-top-k 2 --hard-after 3 --epochs 3", "fewer than epochs 3, found 3"),
]


@pytest.mark.parametrize(
    ("command", "expected"), MODES_AND_FLAGS + VALUES + TASKS + MIXING + OBJECTIVES + PRETRAINING
)
def test_a_wrong_command_is_refused(command, expected, error_line, cwd):
    beginning, *rest = command.split(" ")
    argv = [*BEGINNINGS.get(beginning, beginning).split(), *rest]
    assert expected in error_line(2, *argv)
    assert not list(cwd.iterdir())


def test_a_process_of_its_own_prints_one_line(process):
    result = process(*BEGINNINGS["sst"].split(), "--lr", "0")
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert "--lr: expected" in line


# The same line in Python, in flags, in JSON and in YAML

WITHOUT_FLAG = {  # or with any text as value, or one of another form on the command line
    *("mode", "tasks", "task_options", "own_tasks", "preset", "outside_tasks", "regularizers"),
    *("data", "encoder", "init", "drop_leaks", "leaks_of"),
    *("projection_head", "limit", "scl_preference"),
}
WRONG_NUMBERS = [("lr", -1), ("epochs", 0), ("batch_size", 1.5), ("warmup", math.nan)]


def wrong_settings():
    """Every setting of mode multitask that cannot be "zzz", and wrong numbers."""
    hints = {one.name: hints_of(RunConfig)[one.name] for one in fields(RunConfig)}
    for key, by_role in owners().items():
        if "projection_head" not in by_role:
            method = next(iter(by_role.values()))[0]
            if hasattr(method, "of_task") or "objective" not in by_role:
                hints[key] = hints_of(method)[method.by_key()[key].name]
    for key in sorted(hints.keys() - WITHOUT_FLAG):
        value = ["zzz"] if takes_several(hints[key]) and not takes_names(hints[key]) else "zzz"
        if hints[key] is Any or not (hints[key] is bool or accepts(hints[key], value)):
            yield key, value
    yield from WRONG_NUMBERS


def as_setting(line):
    """A line in which flags are written as settings."""
    return re.sub(r"--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), line)


def test_a_wrong_setting_is_refused_by_the_same_line_wherever_it_stands(error_line, tmp_path):
    command = ("--mode", "multitask", "--tasks", "sst", "qqp", "sts", "--encoder", "tiny")
    cases = list(wrong_settings())
    assert len(cases) > 30
    for key, value in cases:
        with pytest.raises(SettingsError) as error:
            RunConfig(mode="multitask", tasks=("sst", "qqp", "sts"), encoder="tiny", **{key: value})
        expected = str(error.value)
        assert re.search("expected .*found ", expected)
        texts = value if isinstance(value, list) else [value]
        (tmp_path / "a.json").write_text(json.dumps({key: value}), "utf-8")
        (tmp_path / "a.yaml").write_text(yaml.safe_dump({key: value}), "utf-8")
        for flags in (
            (f"--{key.replace('_', '-')}", *texts),
            ("--config", tmp_path / "a.json"),
            ("--config", tmp_path / "a.yaml"),
        ):
            line = error_line(2, *command, *flags)
            assert as_setting(line) == as_setting(f"run.py: {expected} (see --help)"), (key, value)


# Files of settings


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("tasks: []", 2, "--task: expected one, found none"),
        ("own_tasks: 5", 2, "own_tasks: expected"),
        ("mode: multitask\ntasks: [sst]", 2, "config: expected mode single, found multitask"),
        ("leaks_of: own\ntasks: [sst]", 2, "leaks_of: expected drop_leaks, found 'own' without"),
        ("seed: 1\nseed: 2", 1, "expected each key once, found seed twice"),
        (None, 1, "a.yaml: expected a .json or .yaml file of settings, found none"),
    ],
)
def test_a_wrong_file_of_settings_is_refused(text, status, expected, tmp_path, error_line):
    if text is not None:
        (tmp_path / "a.yaml").write_text(text, "utf-8")
    assert expected in error_line(status, "--mode", "single", "--config", tmp_path / "a.yaml")


def test_a_file_of_settings_and_the_configuration_of_a_run_train_it(run_ok, tmp_path):
    rows = [f"text of number {i},{'yn'[i % 2]}" for i in range(24)]
    (tmp_path / "mine.csv").write_text("\n".join(["t,y", *rows]) + "\n")
    (tmp_path / "a.yaml").write_text("lr: 1e-5\nencoder: tiny\nepochs: 1\nlimit: 16\n", "utf-8")
    task = f"mine={tmp_path}/mine.csv:type=classification,text=t,label=y"
    first, again = tmp_path / "first", tmp_path / "again"
    single = ("--mode", "single", "--config")
    run_ok(*single, tmp_path / "a.yaml", "--task", task, "--dev-limit", "8", "--output", first)
    stored = config(first)
    assert (stored["tasks"], stored["lr"], stored["epochs"]) == (["mine"], 1e-5, 1)
    run_ok(*single, first / "config.json", "--output", again)
    assert metrics(first)["dev"] == metrics(again)["dev"]


@pytest.mark.parametrize(
    ("mode", "content", "line"),
    [
        ("single", "task: sst", "expected 'tasks: [NAME]', found 'task'"),
        ("multitask", "tasks: [sst, sts]\npcgrad: true", "expected 'combiner: pcgrad', found"),
    ],
)
def test_flags_that_have_another_name_in_a_file_are_refused(
    mode, content, line, tmp_path, error_line
):
    (tmp_path / "a.yaml").write_text(f"{content}\n", "utf-8")
    assert line in error_line(2, "--mode", mode, "--config", tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("settings", "flags", "shown"),
    [
        ("combiner: linear\npreference: [1, 2]", ("--pcgrad",), {"combiner": "pcgrad"}),
        (
            "combiner: linear\npreference: [1, 3]",
            ("--combiner", "epo"),
            {"combiner": "epo", "preference": [0.25, 0.75]},
        ),
        (
            "sampling: hybrid\nschedule: first-then-joint\nfirst_epochs: 2",
            ("--sampling", "round-robin", "--epochs", "3"),
            {"sampling": "round-robin", "schedule": "first-then-joint", "first_epochs": 2},
        ),
    ],
)
def test_a_flag_replaces_a_method_of_a_file_with_its_settings(
    settings, flags, shown, run_ok, tmp_path
):
    (tmp_path / "a.yaml").write_text(f"tasks: [sst, sts]\n{settings}\n", "utf-8")
    small = ("--encoder", "tiny", "--limit", "16", "--dev-limit", "8", "--epochs", "1")
    command = ("--mode", "multitask", "--config", tmp_path / "a.yaml", *small, *flags)
    run_ok(*command, "--output", tmp_path / "run")
    stored = config(tmp_path / "run")
    assert {key: stored[key] for key in shown} == shown
    assert not stored.keys() & ({"preference"} - shown.keys())


def test_a_preset_that_a_file_of_settings_replaces_is_refused(run_ok, tmp_path, error_line):
    folder = tmp_path / "run"
    sizes = ("--limit", "16", "--dev-limit", "8", "--epochs", "1", "--encoder", "tiny")
    run_ok("--mode", "single", "--task", "sst", "--preset", "bees", *sizes, "--output", folder)
    again = ("--mode", "single", "--config", folder / "config.json", "--output", tmp_path / "again")
    line = error_line(2, *again, "--preset", "supercontext")
    assert "preset supercontext: expected a setting that is not in the file of --config" in line
    assert "lr, head_lr, weight_decay" in line
    run_ok(*again, "--preset", "bees")
    (tmp_path / "some.yaml").write_text("lr: 1e-5\n", "utf-8")
    some = ("--mode", "single", "--task", "sst", "--config", tmp_path / "some.yaml")
    run_ok(*some, "--preset", "bees", *sizes, "--output", tmp_path / "some")
    assert (config(tmp_path / "some")["lr"], config(tmp_path / "some")["head_lr"]) == (1e-5, 2e-5)
