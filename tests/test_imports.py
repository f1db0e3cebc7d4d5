"""Which package may import which (see CONTRIBUTING.md)."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from minbert_multitask import PACKAGES

ROOT = Path(__file__).parents[1]
# Each package may import those after it; the last three are below all others.
ORDER, BELOW = PACKAGES[:-3], set(PACKAGES[-3:])
MAY_IMPORT = {
    "common": set(),
    "minbert": {"common"},
    "losses": {"common"},
    **{name: set(ORDER[place + 1 :]) | BELOW for place, name in enumerate(ORDER)},
}
MAY_IMPORT["ensemble"] -= {"pretrain"}
MAY_IMPORT["reports"] -= {"pretrain"}
MAY_IMPORT["serving"] -= {"studies", "pretrain"}
MAY_IMPORT["docs"] = MAY_IMPORT["cli"] - {"studies", "pretrain"}
MAY_IMPORT["benchmarks"] = MAY_IMPORT["cli"] | {"cli"}
# Merging predictions loads no model and no torch; runs.py reads and writes runs.
OF_PREDICTIONS = {"ensemble", "tasks.predictions", "tasks.metrics"}
# Files that name packages above their own in strings, to import them when they are needed.
NAMED_ABOVE = {
    "multitask/training.py": {"serving", "reports"},
    "multitask/settings/methods.py": {"pretrain"},
}
SLOW = {"transformers", "sentence_transformers"}
FILES = [path for name in MAY_IMPORT for path in sorted((ROOT / name).rglob("*.py"))]


def imported_modules(path: Path, annotations: bool = False) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it, as `package.module`.

    Imports that only type annotations need (`if TYPE_CHECKING`) are included with `annotations`.
    """
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if typing_only and not annotations:
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: expected absolute imports"
            for alias in node.names:
                inner = ROOT.joinpath(*str(node.module).split("."), alias.name)
                module = inner.with_suffix(".py").exists() or inner.is_dir()
                yield f"{node.module}.{alias.name}" if module else str(node.module)


def imported(path: Path) -> set[str]:
    """Return the top-level names of all modules that a file imports, for annotations too."""
    return {name.split(".")[0] for name in imported_modules(path, annotations=True)}


def named(path: Path) -> set[str]:
    """Return the top-level names of the modules that a file imports by a string."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
            found |= {one.value for one in node.args if isinstance(one, ast.Constant)}
        elif isinstance(node, ast.Constant) and re.fullmatch(r"\w+(\.\w+)*:\w+", str(node.value)):
            found.add(node.value)
    return {re.split("[.:]", name)[0] for name in found} & set(MAY_IMPORT)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_modules_import_each_other():
    graph = {module_of(path): set(imported_modules(path)) - {module_of(path)} for path in FILES}
    order = list(TopologicalSorter(graph).static_order())  # CycleError names the modules of a cycle
    assert set(graph) <= set(order)


def test_every_package_has_its_rule():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_import_only_those_below_them_and_no_slow_library(path):
    package = path.relative_to(ROOT).parts[0]
    assert imported(path) & set(MAY_IMPORT) <= MAY_IMPORT[package] | {package}
    if package != "benchmarks" and path.name != "onnx_export.py":
        assert not imported(path) & SLOW


def test_strings_name_packages_above_only_in_known_places():
    found = {str(path.relative_to(ROOT)): named(path) for path in FILES}
    above = {path: names - MAY_IMPORT[path.split("/")[0]] for path, names in found.items()}
    above = {path: names - {path.split("/")[0]} for path, names in above.items()}
    assert {path: names for path, names in above.items() if names} == NAMED_ABOVE


@pytest.mark.parametrize("path", sorted((ROOT / "ensemble").glob("*.py")), ids=lambda p: p.name)
def test_ensembles_of_predictions_load_no_model(path):
    if path.name != "runs.py":
        ours = {
            name
            for name in imported_modules(path, annotations=True)
            if name.split(".")[0] in MAY_IMPORT
        }
        allowed = {name for name in ours if name.split(".")[0] == "ensemble"} | OF_PREDICTIONS
        assert ours <= allowed - {"ensemble.runs"}
