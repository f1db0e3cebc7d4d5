"""Commands and snippets of the README and the pages work: run here, on the tiny encoder.

All but those of torchrun and `python -m`, which have tests of their own, and those that resume.
"""

import inspect
import io
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from glob import glob
from pathlib import Path
from pkgutil import resolve_name

import pytest

from cli import main
from multitask.settings.config import RunConfig

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = {page.name: page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}
TEXTS = {"README.md": README, **PAGES}
MAIN_COMMAND = "--mode multitask --sampling annealed --pcgrad"
TINY = ["--encoder", "tiny"]
SMALL = [*TINY, "--epochs", "2", "--steps-per-epoch", "2"]
FLAGS = {
    **dict.fromkeys(("encode", "probe"), TINY),
    **dict.fromkeys(("single", "multitask", "pretrain"), SMALL),
    "reproduce": [*TINY, "--epochs", "1"],
}
# A block of a page: its language and content, and what it prints.
BLOCK = re.compile(r"```(bash|python|yaml)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
ELSEWHERE = "urlopen|minbert_multitask"  # snippets of the server and the wheel, tested with these


def commands_of(block):
    """The commands of a block with what `echo` or `printf` gives them."""
    lines = re.findall(r"^(?:(?:echo|printf) (.*) \| |.*&& )?\S*python (run\.py .*)$", block, re.M)
    return [(command, shlex.split(said)[0] if said else "") for said, command in lines]


def run(command, said, monkeypatch):
    """Run a command with what makes it small."""
    text = said.replace("\\t", "\t").replace("\\n", "\n").encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    words = shlex.split(command.replace("--seeds 3", "--seeds 2"), comments=True)[1:]
    arguments = [one for word in words for one in (sorted(glob(word)) if "*" in word else [word])]
    small = FLAGS.get(arguments[1], []) if "--run" not in arguments else []
    assert main(arguments + small) == 0, command


@pytest.fixture
def place(tmp_path, monkeypatch, quick_comparisons):
    """An empty folder with the sample where commands look for it; figures are not drawn."""
    monkeypatch.setattr("reports.figures.save_figure", lambda _, file: file.write_text("<svg/>"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").symlink_to(ROOT / "tasks")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", TEXTS)
def test_commands_and_snippets_of_a_page_run_in_their_order(
    page, place, monkeypatch, capsys, without_bfloat16
):
    """The README's snippet learns, in bf16 on a CPU that has it, as for users."""
    if page == "README.md":
        monkeypatch.setattr("minbert.precision.bfloat16_support", without_bfloat16)
    encoder = "minilm" if page == "README.md" else "tiny"
    monkeypatch.setattr("multitask.RunConfig", partial(RunConfig, encoder=encoder))
    names: dict = {}
    for language, block, printed in BLOCK.findall(TEXTS[page]):
        file = re.match(r"# (\w+\.(?:yaml|py))\n", block)
        if file:
            Path(file[1]).write_text(block, "utf-8")
        elif language == "python" and not re.search(ELSEWHERE, block):
            capsys.readouterr()
            exec(compile(block, page, "exec"), names)
            assert capsys.readouterr().out.endswith(printed), block
        elif language == "bash":
            for command, said in commands_of(block):
                if command.split()[1:] != MAIN_COMMAND.split() and "--resume" not in command:
                    run(command, said, monkeypatch)


def test_the_readme_has_its_two_commands():
    first, second = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    assert "requirements.txt" in first
    assert first.endswith("run.py --mode multitask --sampling annealed --pcgrad")
    assert "requirements-dev.txt" in second
    assert second.endswith("-m pytest")


def test_readme_and_pages_are_short():
    assert len(README.splitlines()) <= 100
    assert len(README.split()) <= 900
    words = {name: len(text.split()) for name, text in PAGES.items()}
    assert len(words) == 9
    assert sum(words.values()) <= 12_000
    assert words["reference.md"] <= 3_500


def result_of(printed):
    """Return the header, the value of each (task, metric), and the steps of each status."""
    header = re.search(r"^ *task +metric.*$", printed, re.MULTILINE)
    table = printed[header.start() :].partition("\n\n")[0]  # without that of the classes
    rows = re.findall(r"^ *(\w+) +(\w+) +(-?[01]\.\d{4})\b", table, re.MULTILINE)
    steps = {status: int(n) for n, status in re.findall(r"^(\d+) steps: (.+)$", printed, re.M)}
    return header[0].split(), {row[:2]: float(row[2]) for row in rows}, steps


@pytest.mark.slow
def test_the_main_command_prints_what_the_first_steps_quote(
    place, capsys, monkeypatch, without_bfloat16
):
    """In bf16 on a CPU that has it, as for users."""
    monkeypatch.setattr("minbert.precision.bfloat16_support", without_bfloat16)
    pages = README, PAGES["index.md"]
    texts = ["\n".join(re.findall(r"```text\n(.*?)```", one, re.DOTALL)) for one in pages]
    (of_readme, part, _), (header, values, steps) = map(result_of, texts)
    assert (of_readme, part.items() <= values.items()) == (header, True)
    assert main(shlex.split(MAIN_COMMAND)) == 0
    printed_header, printed, printed_steps = result_of(capsys.readouterr().out)
    assert printed_header == header
    assert printed.keys() == values.keys()
    # Kernels round differently. Two standard deviations of a share of 300 dev examples are 0.06.
    assert printed == pytest.approx(values, abs=0.06)
    alone = "one objective"  # decided by the sampler, not by arithmetic
    assert printed_steps.keys() == steps.keys()
    assert printed_steps[alone] == steps[alone]
    assert sum(printed_steps.values()) == sum(steps.values())
    assert abs(printed_steps["projected"] - steps["projected"]) <= 0.2 * sum(steps.values())


def test_the_reference_is_that_of_the_settings():
    code = "from docs.build_reference import page; print(page(), end='')"
    built = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert PAGES["reference.md"] == built.stdout, "python -m docs.build_reference writes it anew"


def test_functions_of_the_reference_have_these_arguments():
    function = r"`([a-z_.]+)\.([A-Z]\w+(?:\.\w+)?|\w+)\(([^.)]+)\)`"
    found = re.findall(function, PAGES["reference.md"])
    assert len(found) > 20
    for module, name, arguments in found:
        known = inspect.signature(resolve_name(f"{module}:{name}")).parameters
        given = arguments.split(", ")
        assert [one for one in known if one != "self"][: len(given)] == given, name


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
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
    assert len(blocks) >= 10
    for command, message in blocks:
        capsys.readouterr()
        try:
            status = main(shlex.split(command)[1:])
        except SystemExit as ended:
            status = ended.code
        assert status in (1, 2), command
        assert capsys.readouterr().err.splitlines()[-1] == message, command


def test_every_file_that_is_pointed_to_exists():
    outside = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "CONTRIBUTING.md")}
    for folder, texts in ((ROOT, outside), (ROOT / "docs", PAGES)):
        for text in texts.values():
            for target in re.findall(r"\]\(([^)#]+)", text):
                assert target.startswith("http") or (folder / target).exists(), target


def test_every_mode_has_an_example():
    from cli import MODES

    examples = {name for page in PAGES.values() for name in re.findall(r"--mode (\w+)", page)}
    assert set(MODES) <= examples
