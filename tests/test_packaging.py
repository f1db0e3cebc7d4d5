"""The wheel, an application that uses it, and its requirements beside the pinned files."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from common import __version__
from tests.test_imports import PACKAGES, ROOT, modules_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN = PROJECT["name"]
PACKAGE = "minbert_multitask"  # the only one of the wheel
COMMAND = f"{PACKAGE}-{__version__}.dist-info/entry_points.txt"
ASKED = ("torch", "transformers", "sentence-transformers", "numpy", "scipy", "tqdm", "tensorboard")


def bounds(*names: str) -> dict[str, Requirement]:
    """Return the requirements by name of the program itself (no name) or of extras."""
    extras = PROJECT["optional-dependencies"]
    lines = [line for name in names for line in extras[name]] or PROJECT["dependencies"]
    found = {}
    for one in map(Requirement, lines):
        found |= bounds(*one.extras) if one.name == OWN else {one.name.lower(): one}
    return found


def pins(name: str) -> dict[str, str]:
    """Return the versions by package in a requirements file, without those it includes."""
    lines = (ROOT / name).read_text().splitlines()
    plain = [line.split("#")[0].strip() for line in lines]
    found = [Requirement(line) for line in plain if line and line[0] != "-"]
    return {one.name.lower(): str(one.specifier).removeprefix("==") for one in found}


def build(kind: str, folder: Path) -> dict[str, str]:
    """Build the wheel in a folder; return the texts of its files by name."""
    (file,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=[kind])
    with zipfile.ZipFile(file) as wheel:
        return {name: wheel.read(name).decode() for name in wheel.namelist()}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder with the wheel."""
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="module")
def files(built) -> dict[str, str]:
    """The files of the wheel."""
    return build("standard", built)


def test_the_wheel_holds_the_packages_with_their_data_and_nothing_else(files):
    assert f"minbert = {PACKAGE}.cli:start_program" in files[COMMAND]
    found = {name for name in files if ".dist-info/" not in name}
    expected = {f"{PACKAGE}/__init__.py"} | {
        f"{PACKAGE}/{path.relative_to(ROOT)}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert found == expected
    data = {"minbert/tiny/vocab.txt", "reports/page.html", "papers/bees.toml"}
    data |= {"tasks/sample/sts-dev.csv", "serving/page.html"}
    data |= {f"{package}/py.typed" for package in PACKAGES}
    assert {f"{PACKAGE}/{name}" for name in data} <= found


def test_no_file_of_the_wheel_imports_a_package_by_its_name_in_the_tree(files):
    for name, text in files.items():
        if name.endswith(".py"):
            modules = modules_of(ast.parse(text), calls=True)
            assert not {one.split(".")[0] for one in modules} & {*PACKAGES}, name
    assert f"from {PACKAGE}.serving import load\n" in files[f"{PACKAGE}/serving/card.py"]  # a text


def test_an_editable_install_is_the_tree(tmp_path):
    files = build("editable", tmp_path)
    assert files[f"_{PACKAGE}.pth"] == str(ROOT)
    assert "minbert = cli:start_program" in files[COMMAND]


def example(word: str) -> str:
    """Return the only example of the pages that has this word."""
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    (found,) = [one for one in re.findall(r"```python\n(.*?)```", pages, re.DOTALL) if word in one]
    return str(found)


COMBINER = """

class Heavier(Combiner, name="heavier"):
    \"""Weight each objective by --by.\"""

    by: float = 2.0

    def combine(self, gram, losses, drawn):
        return Combined([self.by] * len(drawn), "heavier")


OWN = True
"""
USE = """
import common, tasks, app
from minbert_multitask.minbert import BiEncoder
from minbert_multitask.multitask import RunConfig

assert common.OWN and tasks.OWN
assert RunConfig(tasks=("sst", "sts"), combiner="heavier").combiner.by == 2.0
assert BiEncoder.from_pretrained("tiny").encode(["a cat"]).shape == (1, 32)
answer = app.app.test_client().post("/urgency", json={"texts": ["The server is down!"]})
assert answer.json["urgency"][0] in ("low", "normal", "high")
"""


@pytest.mark.slow
def test_an_application_with_modules_of_the_same_names_uses_the_wheel(built, files, tmp_path):
    """Its `tasks.py` defines a combiner, for the checkout and for the wheel."""
    (wheel,) = built.glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(tmp_path / "installed"), str(wheel)], check=True)
    folder = tmp_path / "application"
    (folder / "common").mkdir(parents=True)
    (folder / "common" / "__init__.py").write_text("OWN = True\n")
    (folder / "tasks.py").write_text(example("except ImportError") + COMBINER)
    (folder / "app.py").write_text(example("flask"))

    def run(*command: object, tree: bool = False) -> str:
        variables = os.environ | ({} if tree else {"PYTHONPATH": str(tmp_path / "installed")})
        words = [sys.executable, *map(str, command)]
        return subprocess.check_output(words, cwd=folder, env=variables, text=True)

    program = tmp_path / "installed" / "bin" / "minbert"
    methods = "--mode", "multitask", "--use", folder / "tasks.py", "--combiner", "heavier"
    assert "--by" in run(ROOT / "run.py", *methods, "--help-all", tree=True)
    rows = "--data-file", ROOT / "tasks" / "sample" / "own" / "requests.csv", "--text", "message"
    own = "--tasks", "sst", *rows, "--labels", "urgency:labels=low|normal|high"
    small = "--encoder", "tiny", "--epochs", 1, "--limit", 40, "--output", "runs/urgency"
    assert "heavier" in run(program, *methods, *own, *small)
    run("-c", USE)


FILES = ("requirements.txt", "requirements-extras.txt", "requirements-dev.txt")
PINNED = {name: version for file in FILES for name, version in pins(file).items()}


def test_the_pinned_versions_are_within_the_bounds_of_the_package():
    required = bounds() | bounds("dev")
    assert set(required) == set(PINNED)
    assert {n: PINNED[n] for n in required if PINNED[n] not in required[n].specifier} == {}


def test_the_first_file_pins_what_training_and_papers_need_and_the_brief_s_packages():
    assert {*bounds(), *bounds("papers"), *ASKED} <= set(pins("requirements.txt"))
    extras = set(pins("requirements-extras.txt"))
    assert {*bounds("data")} <= extras
