"""Which package may import which (see CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What stands above what: each package may import those after it.
ORDER = ("cli", "serving", "studies", "reports", "ensemble", "pretrain", "multitask", "tasks")
BELOW = {"losses", "minbert", "common"}
MAY_IMPORT = {
    "common": set(),
    "minbert": {"common"},
    "losses": {"common"},
    **{name: set(ORDER[place + 1 :]) | BELOW for place, name in enumerate(ORDER)},
}
MAY_IMPORT["ensemble"] -= {"pretrain"}
MAY_IMPORT["reports"] -= {"pretrain"}
MAY_IMPORT["serving"] -= {"studies", "pretrain"}
MAY_IMPORT["docs"] = MAY_IMPORT["cli"] - {"studies", "reports", "pretrain"}
MAY_IMPORT["benchmarks"] = MAY_IMPORT["cli"] | {"cli"}
# An ensemble of predictions loads no model and no torch; weights are averaged in soup.py.
OF_PREDICTIONS = {"ensemble", "tasks.predictions", "tasks.metrics"}
SLOW = {"transformers", "sentence_transformers"}
FILES = [path for name in MAY_IMPORT for path in sorted((ROOT / name).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """Top-level names of all modules that a file imports, wherever in it."""
    return {name.split(".")[0] for name in imported_modules(path)}


def imported_modules(path: Path) -> set[str]:
    """All modules that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: expected absolute imports"
            names.add(node.module or "")
    return names


def test_every_package_has_its_rule():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_import_only_those_below_them_and_no_slow_library(path):
    package = path.relative_to(ROOT).parts[0]
    assert imported(path) & set(MAY_IMPORT) <= MAY_IMPORT[package] | {package}
    if package != "benchmarks" and path.name != "export.py":
        assert not imported(path) & SLOW


@pytest.mark.parametrize("path", sorted((ROOT / "ensemble").glob("*.py")), ids=lambda p: p.name)
def test_ensembles_of_predictions_load_no_model(path):
    if path.name != "soup.py":
        ours = {name for name in imported_modules(path) if name.split(".")[0] in MAY_IMPORT}
        allowed = {name for name in ours if name.split(".")[0] == "ensemble"} | OF_PREDICTIONS
        assert ours <= allowed - {"ensemble.soup"}
