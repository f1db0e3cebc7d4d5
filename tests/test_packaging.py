"""The content of the wheel, and its requirements beside the pinned files."""

import tomllib
import zipfile

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from common import __version__
from common.entry_point import EXTRAS, run_and_report
from tests.test_imports import PACKAGES, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN = PROJECT["name"]
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


def test_the_wheel_holds_the_packages_with_their_data_and_nothing_else(tmp_path):
    builder = WheelBuilder(str(ROOT))
    (file,) = builder.build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(file) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
        command = wheel.read(f"{OWN.replace('-', '_')}-{__version__}.dist-info/entry_points.txt")
    assert b"minbert = cli:start_program" in command
    expected = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert found == expected
    data = {"minbert/tiny/vocab.txt", "reports/page.html", "papers/bees.toml"}
    assert data | {"tasks/sample/sts-dev.csv", "serving/page.html"} <= found
    assert {f"{package}/py.typed" for package in PACKAGES} <= found


FILES = ("requirements.txt", "requirements-extras.txt", "requirements-dev.txt")
PINNED = {name: version for file in FILES for name, version in pins(file).items()}


def test_the_pinned_versions_are_within_the_bounds_of_the_package():
    required = bounds() | bounds("dev")
    assert set(required) == set(PINNED)
    assert {n: PINNED[n] for n in required if PINNED[n] not in required[n].specifier} == {}


def test_the_first_file_pins_what_training_and_papers_need_and_the_brief_s_packages():
    assert {*bounds(), *bounds("papers"), *ASKED} <= set(pins("requirements.txt"))
    extras = set(pins("requirements-extras.txt"))
    assert {*bounds("serve"), *bounds("data")} <= extras


def test_a_missing_extra_is_reported_in_one_line(capsys):
    def work() -> None:
        raise ModuleNotFoundError("No module named 'onnx'", name="onnx")

    assert run_and_report(work) == 1
    line = f"install the package onnx: pip install '.[{EXTRAS['onnx']}]'"
    assert line in capsys.readouterr().err
    assert {*EXTRAS.values()} <= {*PROJECT["optional-dependencies"]}


def test_a_missing_module_of_no_extra_stays_an_error():
    def work() -> None:
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    with pytest.raises(ModuleNotFoundError):
        run_and_report(work)
