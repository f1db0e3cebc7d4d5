"""Every command of the README works: it is run here, on the tiny encoder and for two steps."""

import re
import shlex
from pathlib import Path

import pytest

from cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = "".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL))
COMMANDS = re.findall(r"^(?:.*&& )?\S*python (run\.py .*)$", BLOCKS, re.MULTILINE)
TINY = ["--encoder", "tiny"]
SMALL = [*TINY, "--epochs", "2", "--steps-per-epoch", "2"]
FLAGS = {"encode": TINY, "probe": TINY, "reproduce": [*TINY, "--epochs", "1"]} | dict.fromkeys(
    ("single", "multitask", "pretrain", "pareto"), SMALL
)


def test_the_readme_has_its_two_commands():
    first, second = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    assert "requirements.txt" in first
    assert first.endswith("run.py --mode multitask --sampling annealed --pcgrad")
    assert "requirements-dev.txt" in second
    assert second.endswith("-m pytest")


@pytest.mark.slow
def test_every_command_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    assert len(COMMANDS) >= 5
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").symlink_to(ROOT / "tasks")
    for command in COMMANDS:
        arguments = shlex.split(command, comments=True)[1:]
        small = FLAGS.get(arguments[1], []) if arguments[0] == "--mode" else []
        if "--help" in arguments:
            with pytest.raises(SystemExit) as ended:
                main(arguments)
            assert ended.value.code == 0
        else:
            assert main(arguments + small) == 0, command
    assert "overall" in capsys.readouterr().out


def test_the_python_example_of_the_readme_runs():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict = {}
    exec(example, names)
    assert names["embeddings"].shape == (2, 384)
    assert names["embeddings"].dtype.name == "float32"


def test_every_file_the_readme_points_to_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
