"""Commands and snippets of the README and the pages work: run here, on the tiny encoder.

All but those of torchrun and `python -m`, which have tests of their own, and on pages those that
resume.
"""

import importlib
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from cli import main
from multitask.settings.config import RunConfig
from tasks import DATA_SETS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = {page.name: page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}
MAIN_COMMAND = "--mode multitask --sampling annealed --pcgrad"
ENCODER = {"README.md": "minilm", "python.md": "tiny", "history.md": "tiny"}
TINY = ["--encoder", "tiny"]
SMALL = [*TINY, "--epochs", "2", "--steps-per-epoch", "2"]
FLAGS = {
    **dict.fromkeys(("encode", "probe"), TINY),
    **dict.fromkeys(("single", "multitask", "pretrain"), SMALL),
    "reproduce": [*TINY, "--epochs", "1"],
}
# What pages take from commands of the README.
BEFORE = {
    "runs/simcse": "run.py --mode pretrain --objective simcse --tasks sst --limit 40",
    "runs/all": "run.py --mode multitask --sampling annealed --pcgrad --limit 40",
    "runs/sts": "run.py --mode single --task sts --limit 40",
}


def commands_of(text):
    blocks = "".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL))
    return re.findall(r"^(?:.*&& |.*\| )?\S*python (run\.py .*)$", blocks, re.MULTILINE)


def input_of(command):
    """What `echo` or `printf` gives to a command on its page; nothing to others."""
    lines = "\n".join((README, *PAGES.values()))
    found = re.search(
        rf"^(?:echo|printf) (.*) \| python {re.escape(command)}$", lines, re.MULTILINE
    )
    (text,) = shlex.split(found[1]) if found else ("",)
    return text.replace("\\t", "\t").replace("\\n", "\n").encode()


def run(command, monkeypatch):
    """A command with what makes it small, and its standard input."""
    import io

    arguments = shlex.split(command, comments=True)[1:]
    said = io.TextIOWrapper(io.BytesIO(input_of(command)))
    monkeypatch.setattr("sys.stdin", said)
    if "--help" in arguments:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    else:
        made_here = arguments[0] == "--mode" and "--run" not in arguments
        small = FLAGS.get(arguments[1], []) if made_here else []
        if "top-3" in arguments and TINY[1] in small:  # it has two layers
            small = [*small, "--branch", "top-1"]
        assert main(arguments + small) == 0, command


@pytest.fixture
def place(tmp_path, monkeypatch, quick_comparisons):
    """An empty folder with the sample where commands look for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").symlink_to(ROOT / "tasks")
    return tmp_path


def test_the_readme_is_short_and_has_its_two_commands():
    assert len(README.splitlines()) <= 130
    first, second = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    assert "requirements.txt" in first
    assert first.endswith("run.py --mode multitask --sampling annealed --pcgrad")
    assert "requirements-dev.txt" in second
    assert second.endswith("-m pytest")


@pytest.mark.slow
def test_every_command_of_the_readme_runs(place, monkeypatch, capsys):
    commands = [one for one in commands_of(README) if one.split()[1:] != MAIN_COMMAND.split()]
    assert len(commands) >= 9
    for command in commands:
        run(command, monkeypatch)
    assert "overall" in capsys.readouterr().out


def result_of(printed):
    """Return the header, the value of each (task, metric), and the steps of each status."""
    header = re.search(r"^ *task +metric.*$", printed, re.MULTILINE)
    table = printed[header.start() :].partition("\n\n")[0]  # without that of the classes
    rows = re.findall(r"^ *(\w+) +(\w+) +(-?[01]\.\d{4})\b", table, re.MULTILINE)
    steps = {status: int(n) for n, status in re.findall(r"^(\d+) steps: (.+)$", printed, re.M)}
    return header[0].split(), {row[:2]: float(row[2]) for row in rows}, steps


def quoted_results():
    """Return the results of the main command in the README and in the first steps."""
    pages = README, PAGES["first-steps.md"]
    texts = ["\n".join(re.findall(r"```text\n(.*?)```", one, re.DOTALL)) for one in pages]
    assert f"{sum(result_of(texts[1])[2].values())} steps in all" in texts[1]
    return map(result_of, texts)


def test_the_output_in_the_readme_is_an_excerpt_of_that_in_the_first_steps():
    (header, values, steps), (whole_header, every, whole_steps) = quoted_results()
    assert (header, steps) == (whole_header, whole_steps)
    assert len(values) == 4
    assert list((every | values).items()) == list(every.items())


@pytest.mark.slow
def test_the_main_command_prints_what_the_first_steps_quote(
    place, capsys, monkeypatch, without_bfloat16
):
    """In bf16 on a CPU that has it, as for users."""
    monkeypatch.setattr("minbert.precision.bfloat16_support", without_bfloat16)
    _, (header, values, steps) = quoted_results()
    assert main(shlex.split(MAIN_COMMAND)) == 0
    printed_header, printed, printed_steps = result_of(capsys.readouterr().out)
    assert printed_header == header
    assert printed.keys() == values.keys()
    # Kernels round differently. Two standard deviations of a share of 100 dev examples are 0.1.
    assert printed == pytest.approx(values, abs=0.1)
    alone = "one objective"  # decided by the sampler, not by arithmetic
    assert printed_steps.keys() == steps.keys()
    assert printed_steps[alone] == steps[alone]
    assert sum(printed_steps.values()) == sum(steps.values())
    assert abs(printed_steps["projected"] - steps["projected"]) <= 0.2 * sum(steps.values())


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_command_of_a_page_runs(page, place, monkeypatch):
    for name, content in re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", PAGES[page], re.DOTALL):
        (place / name).write_text(content, "utf-8")
    # One that resumes goes on with a run of another page.
    commands = [one for one in commands_of(PAGES[page]) if "--resume" not in one]
    for folder, command in BEFORE.items():
        made = any(f"--output {folder}" in one for one in commands)
        if not made and any(folder in one for one in commands):
            run(f"{command} --output {folder}", monkeypatch)
    for command in commands:
        run(command, monkeypatch)


def test_the_list_of_methods_is_that_of_the_docstrings():
    code = "from docs.build_reference import methods_page; print(methods_page(), end='')"
    built = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert PAGES["methods.md"] == built.stdout, "python -m docs.build_reference writes it anew"


def test_every_public_name_is_in_the_api():
    page = PAGES["api.md"]
    for module in ("minbert", "multitask", "losses", "ensemble", "serving"):
        for name in importlib.import_module(module).__all__:
            assert f"::: {module}.{name}\n" in page, f"{module}.{name}"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert "losses.simcse_loss" in (tmp_path / "api.html").read_text()
    for page in tmp_path.rglob("*.html"):  # nothing is loaded from the network
        assert not re.search(r"<(script|link|img)\b[^>]*(src|href)=.?http", page.read_text()), page


@pytest.mark.slow
def test_messages_of_troubleshooting_are_those_that_are_printed(place, monkeypatch, capsys):
    broken = place / "broken"
    shutil.copytree(ROOT / "tasks" / "sample", broken)
    with (broken / "ids-sst-train.csv").open("a") as file:
        file.write("x9\tA film\tgood\n")
    small = "run.py --mode single --task sst --encoder tiny --epochs 1 --limit 40 --output runs/sst"
    assert main(shlex.split(small)[1:]) == 0
    blocks = re.findall(r"```console\n\$ python (.*)\n(.*)\n```", PAGES["troubleshooting.md"])
    assert len(blocks) >= 12

    def unreachable(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.model_info", unreachable)
    for command, message in blocks:
        capsys.readouterr()
        try:
            status = main(shlex.split(command)[1:])
        except SystemExit as ended:
            status = ended.code
        assert status in (1, 2), command
        assert capsys.readouterr().err.splitlines()[-1] == message, command


@pytest.mark.slow
@pytest.mark.parametrize("page", ENCODER)
def test_snippets_of_a_page_print_what_it_shows(page, place, monkeypatch, capsys):
    text = README if page == "README.md" else PAGES[page]
    small = partial(RunConfig, encoder=ENCODER[page])
    monkeypatch.setattr("multitask.RunConfig", small, raising=False)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert blocks
    for code, printed in blocks:
        capsys.readouterr()
        exec(compile(code, page, "exec"), names)
        if printed:
            assert capsys.readouterr().out.endswith(printed), code


def test_every_file_that_is_pointed_to_exists():
    for folder, text in ((ROOT, README), *((ROOT / "docs", page) for page in PAGES.values())):
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert (folder / target).exists(), target


def test_no_two_commands_train_different_runs_in_one_folder():
    trained = {}
    modes = ("single", "multitask", "pretrain")
    for command in (one for text in (README, *PAGES.values()) for one in commands_of(text)):
        words = shlex.split(command, comments=True)
        flags = dict(zip(words, [*words[1:], ""], strict=True))
        if flags.get("--mode") in modes and "--output" in flags and "--resume" not in words:
            known = trained.setdefault(flags["--output"], words)
            assert known == words, (known, words)
    assert len(trained) > 30


def test_every_mode_is_in_the_readme():
    from cli import MODES

    for mode in MODES:
        assert f"`{mode}`" in README, mode


def test_every_tasks_files_are_documented():
    lines = [line for line in PAGES["running.md"].splitlines() if line.startswith("| `")]
    files = {}
    for name, row in DATA_SETS.items():
        own = [file for file in (row.train, row.dev, row.test) if isinstance(file, str)]
        files[name] = {part for file in own for part in file.split("/")}
    for name, parts in files.items():
        (line,) = [line for line in lines if f"`{name}`" in line.split(" | ")[0]]
        for part in parts:
            assert part in line, (name, part)
