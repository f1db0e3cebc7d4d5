"""Who may import whom: each room only those to its right (see CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "minbert": set(),
    "losses": set(),
    "tasks": {"losses", "minbert"},
    "multitask": {"tasks", "losses", "minbert"},
    "pretrain": {"multitask", "tasks", "losses", "minbert"},
    "ensemble": {"multitask", "tasks", "losses", "minbert"},
    "reports": {"ensemble", "multitask", "tasks", "losses", "minbert"},
    "studies": {"reports", "ensemble", "pretrain", "multitask", "tasks", "losses", "minbert"},
    "serving": {"reports", "ensemble", "multitask", "tasks", "losses", "minbert"},
    "cli": {
        "serving",
        "studies",
        "reports",
        "ensemble",
        "pretrain",
        "multitask",
        "tasks",
        "losses",
        "minbert",
    },
    "docs": {"serving", "ensemble", "multitask", "tasks", "losses", "minbert"},
    "benchmarks": {
        "cli",
        "serving",
        "studies",
        "reports",
        "ensemble",
        "pretrain",
        "multitask",
        "tasks",
        "losses",
        "minbert",
    },
}
# An ensemble of predictions loads no model and no torch; weights are averaged in soup.py.
OF_PREDICTIONS = {"ensemble", "tasks.predictions", "tasks.metrics"}
SLOW = {"transformers", "sentence_transformers"}
FILES = [path for room in MAY_IMPORT for path in sorted((ROOT / room).rglob("*.py"))]


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


def test_every_room_has_its_rule():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms == set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_import_only_what_stands_to_their_right(path):
    room = path.relative_to(ROOT).parts[0]
    assert imported(path) & set(MAY_IMPORT) <= MAY_IMPORT[room] | {room}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_on_the_way_of_training_imports_the_slow_libraries(path):
    if path.relative_to(ROOT).parts[0] != "benchmarks" and path.name != "onnx_file.py":
        assert not imported(path) & SLOW


@pytest.mark.parametrize("path", sorted((ROOT / "ensemble").glob("*.py")), ids=lambda p: p.name)
def test_ensembles_of_predictions_load_no_model(path):
    if path.name != "soup.py":
        ours = {name for name in imported_modules(path) if name.split(".")[0] in MAY_IMPORT}
        allowed = {name for name in ours if name.split(".")[0] == "ensemble"} | OF_PREDICTIONS
        assert ours <= allowed - {"ensemble.soup"}
