"""Packages that only some modes need, and how to install them."""

from __future__ import annotations

from pathlib import Path

# Name of the module -> the extra of this project's package that installs it (pyproject.toml).
EXTRAS = {
    "jinja2": "reports",
    "markupsafe": "reports",
    "matplotlib": "reports",
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "onnx": "export",
    "transformers": "export",
    "datasets": "data",
}


def missing(module: str) -> str:
    """Return `expected the package fastapi, found none: pip install ...`."""
    command = f'"minbert-multitask[{EXTRAS[module]}]"'
    if (Path(__file__).parents[1] / "pyproject.toml").exists():  # a checkout, not installed
        command = "-r requirements.txt -r requirements-extras.txt"
    return f"expected the package {module}, found none: pip install {command}"
