"""Draws the pictures of docs/architecture.md from the code: python -m docs.build_architecture

The packages and their imports come from the source files, the shapes of a step from a step that is
run.
"""

from __future__ import annotations

import ast
import inspect
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook

from minbert.batching import pack
from minbert.encoder import Encoder
from minbert_multitask import PACKAGES
from multitask import RunConfig, train
from multitask.combiners import Combined, Combiner, pcgrad_weights
from multitask.loop.gradients import GradientRows
from multitask.optimizer import AdamW
from multitask.passes import EncoderPass, LeafLosses
from tasks import data_folder
from tasks.heads import HiddenClassifier

ROOT = Path(__file__).parents[1]
PICTURES = {
    name: Path(__file__).with_name(f"architecture-{name}.svg") for name in ("packages", "step")
}
ROW = 28  # pixels of a table's row


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


def packages_picture() -> str:
    """Draw a row per package: its name, its purpose, and a cell for each package it imports."""
    left, first = 120, 690
    size = first + ROW * (len(PACKAGES) + 2), ROW * (len(PACKAGES) + 4) + 4
    parts = []
    for column, name in enumerate(PACKAGES):
        x, y = first + ROW * column + ROW // 2, ROW * 4 - 8
        parts.append(f'<text transform="translate({x},{y}) rotate(-60)">{name}</text>')
    for row, name in enumerate(PACKAGES):
        y = ROW * (row + 4)
        text = ast.get_docstring(ast.parse((ROOT / name / "__init__.py").read_text("utf-8")))
        purpose = str(text).splitlines()[0]
        parts.append(f'<text x="8" y="{y + 19}" class="name">{name}</text>')
        parts.append(f'<text x="{left}" y="{y + 19}">{escape(purpose)}</text>')
        used = {
            module.split(".")[0]
            for path in (ROOT / name).rglob("*.py")
            for module in imported_modules(path)
        }
        for column, other in enumerate(PACKAGES):
            x = first + ROW * column
            kind = "own" if other == name else "used" if other in used else "free"
            parts.append(f'<rect x="{x}" y="{y}" width="{ROW}" height="{ROW}" class="{kind}"/>')
    return svg(size, parts)


def step_picture() -> str:
    """Draw the way of a step's batches to the update, with the shapes of a step that is run."""
    passes, gram, shared = traced_step()
    parts, lane = [], 280
    titles = [
        ("token ids of all texts, packed", pack),
        ("hidden states", Encoder),
        ("pooled embeddings, one leaf per text", EncoderPass),
        ("outputs of the head, then the loss", HiddenClassifier),
        ("gradient on the shared parameters", LeafLosses),
    ]
    for column, (task, tokens, hidden, texts, head, outputs) in enumerate(passes):
        x = 20 + lane * column
        shapes = [f"{task}: {tokens} tokens", hidden, texts, f"{head} {outputs}", f"({shared},)"]
        for row, ((title, _), shape) in enumerate(zip(titles, shapes, strict=True)):
            parts += box(x, 20 + 70 * row, lane - 20, [title, shape])
            if row:
                parts += arrow(x + lane // 2 - 10, 70 * row)
        bottom, middle = 70 * len(titles) - 6, x + lane // 2 - 10
        centre = 10 + lane + lane // 2
        parts.append(f'<path d="M{middle} {bottom} v10 H{centre}" class="arrow"/>')
    count = len(passes)
    joined = [
        ("rows of gradients", f"({count}, {shared})", GradientRows),
        ("Gram matrix", f"{gram}", GradientRows),
        ("weights by the combiner, here PCGrad", f"({count},)", pcgrad_weights),
        ("weights @ rows: the update's gradient", f"({shared},)", GradientRows),
        ("clip, then AdamW", "encoder and heads", AdamW),
    ]
    for row, (title, shape, owner) in enumerate(joined, len(titles)):
        parts += box(20 + lane, 20 + 70 * row, lane - 20, [title, shape])
        parts += arrow(10 + lane + lane // 2, 70 * row)
        parts.append(note(2 * lane + 16, 20 + 70 * row, owner))
    for row, (_, owner) in enumerate(titles):
        parts.append(note(lane * count + 16, 20 + 70 * row, owner))
    return svg((lane * count + 190, 70 * (len(titles) + len(joined)) + 10), parts)


def traced_step() -> tuple[list[tuple[str, int, str, str, str, str]], str, str]:
    """Run one step on the bundled sample and return what went through encoder, heads, combiner.

    By task: its name, tokens, and the shapes of hidden states, embeddings and outputs; then the
    shape of the Gram matrix and the number of shared parameters.
    """
    found: list[tuple[str, Any, Any]] = []
    grams: list[tuple[int, ...]] = []

    class Watched(Combiner, name="watched"):
        """PCGrad in the order of the tasks, which keeps the shape of the Gram matrix."""

        def combine(self, gram: Any, losses: Any, drawn: Sequence[int]) -> Combined:
            grams.append(tuple(gram.shape))
            order = [[j for j in range(len(losses)) if j != i] for i in range(len(losses))]
            return Combined(pcgrad_weights(gram, order), "projected")

    def keep(module: Any, inputs: Any, outputs: Any) -> None:
        name = type(module).__name__
        if not grams and isinstance(outputs, Tensor):
            found.append((name, [tuple(one.shape) for one in inputs if isinstance(one, Tensor)],
                          tuple(outputs.shape)))  # fmt: skip

    config = RunConfig(
        mode="multitask", tasks=("sst", "qqp", "sts"), encoder="tiny", combiner=Watched(),
        data=str(data_folder("sample")), epochs=1, steps_per_epoch=1, limit=64, dev_limit=4,
        linear="mkl", precision="fp32",
    )  # fmt: skip
    hook = register_module_forward_hook(keep)
    try:
        with tempfile.TemporaryDirectory() as folder:
            model = train(config, Path(folder) / "run").model.model
    finally:
        hook.remove()
    heads = {type(head).__name__: task for task, head in model.heads.items()}
    hidden = [shape for name, _, shape in found if name == type(model.bi_encoder.encoder).__name__]
    passes = [
        (heads[name], hidden[place][0], str(hidden[place]), " and ".join(map(str, inputs)), name,
         str(outputs))
        for place, (name, inputs, outputs) in enumerate(one for one in found if one[0] in heads)
    ]  # fmt: skip
    shared = sum(one.numel() for several in model.sections().values() for one in several)
    return passes, str(grams[0]), f"{shared:,}"


def box(x: int, y: int, width: int, lines: Sequence[str]) -> list[str]:
    middle = x + width // 2
    return [
        f'<rect x="{x}" y="{y}" width="{width}" height="44" class="box"/>',
        f'<text x="{middle}" y="{y + 18}" class="middle">{escape(lines[0])}</text>',
        f'<text x="{middle}" y="{y + 36}" class="middle shape">{escape(lines[1])}</text>',
    ]


def arrow(x: int, y: int) -> list[str]:
    return [f'<path d="M{x} {y - 6} v20 m-4 -6 l4 6 l4 -6" class="arrow"/>']


def note(x: int, y: int, owner: Any) -> str:
    """Name the file that holds what computes a station."""
    file = Path(inspect.getfile(owner)).relative_to(ROOT)
    return f'<text x="{x}" y="{y + 27}" class="file">{file.as_posix()}</text>'


def svg(size: tuple[int, int], parts: Sequence[str]) -> str:
    style = (
        "text{font:13px sans-serif;fill:#222}.name{font-weight:bold}.middle{text-anchor:middle}"
        ".shape,.file{font:12px monospace;fill:#246}.box{fill:#eef3f8;stroke:#468}"
        ".used{fill:#468;stroke:#ccc}.free{fill:#fff;stroke:#ccc}.own{fill:#ddd;stroke:#ccc}"
        ".arrow{fill:none;stroke:#468}"
    )
    width, height = size
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
    )
    background = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([head, f"<style>{style}</style>", background, *parts, "</svg>"]) + "\n"


def main() -> None:
    PICTURES["packages"].write_text(packages_picture(), "utf-8")
    PICTURES["step"].write_text(step_picture(), "utf-8")


if __name__ == "__main__":
    main()
