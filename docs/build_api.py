"""Generator of docs/api.md from the docstrings of public names: python -m docs.build_api"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import losses

PAGE = Path(__file__).with_name("api.md")
PUBLIC = {
    "minbert": ("BiEncoder",),
    "serving": ("MultiTaskModel", "Prediction"),
    "multitask": ("RunConfig", "train", "Run", "task"),
    "losses": tuple(losses.__all__),
    "multitask.combiners": ("pcgrad_weights", "epo_weights"),
    "multitask.sampling": ("annealed_probabilities",),
    "ensemble": ("majority_vote", "average"),
    "tasks.metrics": ("overall_score",),
}
METHODS = {
    "BiEncoder": ("from_pretrained", "encode", "encode_stream", "embed", "save_pretrained"),
    "MultiTaskModel": ("load", "predict", "predict_stream", "encode"),
    "Run": ("compare",),
}


def page() -> str:
    """Return the whole page: a section per module, an entry per name."""
    parts = ["# API", "Built from the docstrings by `python -m docs.build_api`."]
    for module, names in PUBLIC.items():
        parts.append(f"## `{module}`")
        found = importlib.import_module(module)
        for name in names:
            one = getattr(found, name)
            parts += entry(f"{module}.{name}", one, "###")
            for method in METHODS.get(name, ()):
                parts += entry(f"{name}.{method}", getattr(one, method), "####")
    return "\n\n".join(parts) + "\n"


def entry(name: str, one: Any, level: str) -> list[str]:
    """Return the name, the signature and the unchanged docstring as Markdown."""
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(one)))
    shown = re.sub(r"<function (\w+) at \w+>", r"\1", shown)
    text = inspect.getdoc(one) or ""
    return [f"{level} {name}", f"```text\n{name}{shown}\n\n{text}\n```"]


def main() -> None:
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
