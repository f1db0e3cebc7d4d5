"""The cells of docs/first_steps.ipynb run in order, and print what the notebook shows."""

import ast
import contextlib
import io
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def test_the_notebook_runs_and_shows_what_it_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = json.loads((ROOT / "docs/first_steps.ipynb").read_text("utf-8"))
    names: dict[str, object] = {}
    shown, printed = [], []
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            code = "".join(cell["source"])
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(ast.parse(code), "first_steps.ipynb", "exec"), names)
            printed.append(out.getvalue())
            texts = ["".join(one.get("text", "")) for one in cell["outputs"]]
            shown.append("".join(texts))
    assert len(printed) == 4
    assert printed[0] == shown[0]  # embeddings, rounded
    assert names["both"].metrics["epochs"] == 2
    for place, line in ((1, "trains minilm on sst and sts"), (3, "Against single")):
        assert line in printed[place]
        assert line in shown[place]
    assert "epoch 2 of 2: dev score" in printed[1]
