"""Packages import only those to their right."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *("cli", "papers", "serving", "reports", "pretrain", "ensemble", "multitask"),
    *("tasks", "losses", "minbert", "common"),
)


def modules_of(tree: ast.AST, calls: bool = False) -> set[str]:
    """Return the modules that are imported, by `calls` also those with a name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
        elif calls and isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            found.add(ast.unparse(node.args[0]).strip("f'\""))
    return found


def test_packages_import_only_to_their_right():
    for place, package in enumerate(PACKAGES):
        to_its_left = {*PACKAGES[:place], "benchmarks", "docs"}
        for path in (ROOT / package).rglob("*.py"):
            modules = modules_of(ast.parse(path.read_text("utf-8")))
            assert not {one.split(".")[0] for one in modules} & to_its_left, path
