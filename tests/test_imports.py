"""Packages import only those to their right, and no circle of imports is long."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *("cli", "papers", "serving", "reports", "pretrain", "ensemble", "multitask"),
    *("tasks", "losses", "minbert", "common"),
)
LONGEST = 3  # files of a circle


def files() -> dict[str, Path]:
    """Return the files of all packages by the names of their modules."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    parts = {path: path.relative_to(ROOT).with_suffix("").parts for path in paths}
    return {".".join(names).removesuffix(".__init__"): path for path, names in parts.items()}


def imports(path: Path, inside_functions: bool) -> set[str]:
    """Return the names that a file imports."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef) and not inside_functions:
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        further = graph[waiting.pop()] - found
        found |= further
        waiting += further
    return found


def test_packages_import_only_to_their_right_and_no_circle_is_long():
    modules = files()
    for name, path in modules.items():
        package = name.split(".")[0]
        to_its_left = {*PACKAGES[: PACKAGES.index(package)], "benchmarks", "docs"}
        assert not {one.split(".")[0] for one in imports(path, True)} & to_its_left, name
    graph = {name: imports(path, False) & {*modules} - {name} for name, path in modules.items()}
    beyond = {name: reached(graph, name) for name in graph}
    for name in graph:
        circle = {one for one in beyond[name] if name in beyond[one]}
        assert len(circle) <= LONGEST, sorted(circle)
