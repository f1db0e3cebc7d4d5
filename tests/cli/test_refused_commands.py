"""Wrong commands and settings: one line that says what to do, status 2, nothing written.

The rules themselves are tested with `RunConfig`; here are the command line's own.
"""

import pytest
from run_files import config

BEGINNINGS = {
    "sst": "--mode single --task sst --encoder tiny",
    "all": "--mode multitask --encoder tiny",
    "pretrain": "--mode pretrain --encoder tiny",
}
WRONG = [
    ("sst stray", "unrecognized arguments: stray"),
    ("sst --lr 0", "--lr: Expected float > 0.0, found '0'"),
    ("sst --encoder nope --output run", "unknown encoder 'nope': give minilm"),
    ("all --limit 3 4", "--limit: give one value for each task"),
    ("--mode serve --run x --host=", "--host: Expected str of length >= 1, found ''"),
    ("sst --device gpu", "--device: Expected str, auto, cpu, cuda or cuda:N, found 'gpu'"),
    ("--mode single", "--mode single needs one task, for example --task sst"),
    ("--mode single --data-file x.csv --text t --labels sst", "'sst': this name is reserved"),
    ("sst --sts-head cosine", "--sts-head: needs task sts"),
    ("all --preference 1 2 3", "--preference: needs --combiner epo or --combiner linear"),
    ("sst --smart-weight sst=x", "--smart-weight: Expected float"),
    ("pretrain", "--objective: mode pretrain needs one of "),
    ("all --labels topic --tasks sst", "--labels: needs --data-file, the file"),
    ("pretrain --objective nli --nli x --tasks sst", "--tasks: leave them out; the text is x"),
    ("pretrain --objective simcse --text x", "--text: needs data_file, the file"),
    ("pretrain --objective pairs --data-file x --text a", "--text: objective pairs needs two"),
    ("pretrain --objective supcon --text x", "--text: needs --objective simcse or"),
]


@pytest.mark.parametrize(("command", "expected"), WRONG)
def test_a_wrong_command_is_refused(command, expected, error_line, cwd):
    beginning, *rest = command.split(" ")
    argv = [*BEGINNINGS.get(beginning, beginning).split(), *rest]
    assert expected in error_line(2, *argv)
    assert not list(cwd.iterdir())


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("tasks: []", 2, "needs one task, for example --task sst"),
        ("mode: multitask\ntasks: [sst]", 2, "config: the file is for mode multitask, not for"),
        ("lr: 1\ntasks: [sst]", 2, "no setting 'lr'"),
        ("seed: 2026-13-45", 1, "month must be in 1..12"),
        ("tasks: [sst", 1, "a.yaml: the settings cannot be read: while parsing"),
        ("- sst", 1, "the settings cannot be read: Expected `object`, got `array`"),
        ('epochs: !!int ""', 1, "an alias or a tag in line 1"),
        ("tasks: &a\n  sst: *a", 1, "an alias or a tag in line 2"),
        (None, 1, "a.yaml: the settings cannot be read: [Errno 2] No such file"),
    ],
)
def test_a_wrong_file_of_settings_is_refused(text, status, expected, tmp_path, error_line):
    if text is not None:
        (tmp_path / "a.yaml").write_text(text, "utf-8")
    assert expected in error_line(status, "--mode", "single", "--config", tmp_path / "a.yaml")


LINEAR = "combiner: {name: linear, preference: [1, 2]}"


@pytest.mark.parametrize(
    ("settings", "flags", "shown"),
    [
        (LINEAR, "--pcgrad", {"combiner": {"name": "pcgrad"}}),
        (LINEAR, "--preference 3 1", {"combiner": {"name": "linear", "preference": [3.0, 1.0]}}),
        ("preset: bees", "--head-lr 1e-3", {"optimizer": {"lr_schedule": "constant", "warmup": 0}}),
    ],
)
def test_flags_change_the_methods_of_a_file(settings, flags, shown, run_ok, tmp_path):
    (tmp_path / "a.yaml").write_text(f"tasks: [sst, sts]\n{settings}\n", "utf-8")
    small = ("--encoder", "tiny", "--limit", "16", "--dev-limit", "8", "--epochs", "1")
    command = ("--mode", "multitask", "--config", tmp_path / "a.yaml", *small, *flags.split())
    run_ok(*command, "--output", tmp_path / "run")
    stored = config(tmp_path / "run")
    for key, settings_of_method in shown.items():
        assert settings_of_method.items() <= stored[key].items()
