"""Quality against speed: precisions, static tables, quantised peers, and the sizes of a run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.encode import cosine
from benchmarks.timing import in_rounds, make_result, rate_table, timed
from minbert.bi_encoder import BiEncoder
from minbert.config import ENCODING_PRECISIONS
from multitask.settings.config import RunConfig
from reports.figures import MARKERS, blank_figure, heading, save_figure, styled
from serving.run_encoder import encoder_of_run
from serving.static import distil
from tasks import CS224N, build_task, data_folder
from tasks.metrics import spearman
from tasks.readers import Examples

STATIC_WIDTHS = (256,)
NEAREST = 10
BUCKET = 64  # texts in a batch of a peer
CALIBRATION = 300  # texts, NNCF's default


@dataclass(frozen=True)
class Side:
    """An encoder of texts, and the map from fp32 embeddings (n, H) to its space.

    The cosine to fp32 needs this map; None if it is not known.
    """

    encode: peers.Encode
    space: Callable[[np.ndarray], np.ndarray] | None = lambda embeddings: embeddings


@dataclass(frozen=True)
class Place:
    """What sides are built of: the model, training texts and the precisions to measure."""

    model: BiEncoder
    texts: Sequence[str]
    precisions: Sequence[str]


def precisions(place: Place) -> dict[str, Side]:
    names = dict.fromkeys(["fp32", *place.precisions])
    encode = partial(place.model.encode, normalize=True)
    return {f"ours {name}": Side(partial(encode, precision=name)) for name in names}


def students(place: Place) -> dict[str, Side]:
    """Static students of several widths, fitted to the training texts."""
    found = {}
    for width in STATIC_WIDTHS:
        student = distil(place.model, place.texts, width, progress=True)
        projection = student.projection.numpy()
        encode = peers.static_encode(student, place.model.tokenizer)
        found[f"ours static {width}"] = Side(encode, partial(projected, projection))
    return found


def sizes(model: BiEncoder, precisions: Sequence[str]) -> dict[str, Side]:
    """Each size that an encoder was trained for, in each precision; the complete one in fp32 first.

    The cosine to fp32 is given for widths; earlier layers have another space.
    """
    complete, found = model.size, {}
    for precision in dict.fromkeys(["fp32", *precisions]):
        for layers in model.sizes.exits or (complete.layers,):
            for width in model.sizes.widths or (complete.width,):
                encode = partial(model.smaller(width, layers).encode, precision=precision)
                space = partial(first, width) if layers == complete.layers else None
                name = f"{precision}, {layers} layers, {width} wide"
                found[name] = Side(partial(encode, normalize=True), space)
    return found


def first(width: int, embeddings: np.ndarray) -> np.ndarray:
    return embeddings[:, :width]


def projected(projection: np.ndarray, embeddings: np.ndarray) -> np.ndarray:
    return embeddings @ projection


def model2vec(place: Place) -> dict[str, Side]:
    return {f"model2vec {w}": Side(peers.model2vec_encode(w), None) for w in STATIC_WIDTHS}


def onnx(place: Place) -> dict[str, Side]:
    encode, tokenizer = peers.onnx_encode, peers.plain_tokenizer()
    return {
        f"ONNX Runtime {name}, bucketed {BUCKET}": Side(encode(tokenizer, BUCKET, name == "int8"))
        for name in ("fp32", "int8")
    }


def openvino(place: Place) -> dict[str, Side]:
    some = place.texts[:: max(1, len(place.texts) // CALIBRATION)][:CALIBRATION]
    encode = peers.openvino_encode(peers.plain_tokenizer(), BUCKET, some)
    return {f"OpenVINO int8, bucketed {BUCKET}": Side(encode)}


# Sides, and the packages that they need.
SIDES: dict[Callable[[Place], dict[str, Side]], tuple[str, ...]] = {
    precisions: (),
    students: ("sentence_transformers",),
    model2vec: ("model2vec", "skeletoken"),
    onnx: ("onnx", "onnxruntime"),
    openvino: ("onnx", "openvino", "nncf"),
}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure quality on STS dev, and speed and agreement with fp32 on Quora's dev questions."""
    if args.device != "cpu":
        raise SystemExit("smaller: expected --device cpu")
    folder = data_folder(args.data)
    train = [build_task(name).read(folder, "train").texts for name in CS224N]
    texts = [text for columns in train for column in columns for text in column]
    model = BiEncoder.from_pretrained("minilm")
    sides = {"minilm": build_sides(Place(model, texts, args.precisions))}
    if args.run:
        run = encoder_of_run(Path(args.run), RunConfig())
        sides["trained on STS with widths and exits"] = sizes(run, args.precisions)
    questions = [text for column in build_task("qqp").read(folder, "dev").texts for text in column]
    questions = questions[: args.texts]
    dev = build_task("sts").read(folder, "dev")
    groups = {}
    for name, several in sides.items():
        title = f"{name}, {len(questions):,} questions, STS dev of {len(dev.texts[0]):,} pairs"
        groups[title] = compare(several, questions, args.repetitions)
        for side, figures in groups[title].items():
            figures["spearman"] = sts_spearman(several[side], dev)
    if args.figure:
        draw(groups, args.figure)
    return make_result(args, "sentences/s", groups)


def sts_spearman(side: Side, dev: Examples) -> float:
    """Return Spearman's correlation of cosines and labels of sentence pairs."""
    scores = cosine(*(np.asarray(side.encode(column)) for column in dev.texts))
    assert dev.targets is not None, "dev has labels"
    return spearman(scores, np.asarray(dev.targets))


@styled
def draw(groups: Mapping[str, Mapping[str, Any]], file: Path) -> None:
    """Draw one panel for each group: Spearman against sentences/s, a point for each side."""
    figure = blank_figure(6.5 * len(groups), 5)
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for axis, (title, sides) in zip(panels, groups.items(), strict=True):
        name, _, detail = title.partition(", ")
        heading(axis, name, detail)
        places: list[tuple[tuple[float, float], str]] = []
        for marker, (kind, several) in zip(MARKERS, by_kind(sides).items(), strict=False):
            points = [(one["median"], 100 * one["spearman"]) for one in several.values()]
            axis.plot(*zip(*points, strict=True), marker, label=kind)
            # The labels of precisions are the same: those of the first one serve for all.
            if not places or kind not in ENCODING_PRECISIONS:
                places += zip(points, several, strict=True)
        for number, (place, label) in enumerate(sorted(places)):
            height = (4, -12)[number % 2]  # above and below in turn, as neighbours are near
            axis.annotate(label, place, (4, height), "data", "offset points", fontsize=8)
        axis.set_xscale("log")
        axis.set(xlabel="sentences/s", ylabel="STS dev, Spearman")
        axis.margins(x=0.15)
        axis.legend(loc="lower left")
    save_figure(figure, file)


def by_kind(sides: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Group sides by library, with the precision as label, or by precision, with the size."""
    found: dict[str, dict[str, Any]] = {}
    for name, figures in sides.items():
        kind, _, label = name.partition(", ")
        if kind not in ENCODING_PRECISIONS:
            kind, _, label = kind.rpartition(" ")
        found.setdefault(kind, {})[label] = figures
    return found


def build_sides(place: Place) -> dict[str, Side]:
    """Return all sides by name; print a line for each that needs a package that is missing."""
    found: dict[str, Side] = {}
    for build, packages in SIDES.items():
        if missing := [name for name in packages if find_spec(name) is None]:
            print(f"{', '.join(missing)}: not installed, so {build.__name__} is skipped")
        else:
            found |= build(place)
    return found


def compare(sides: dict[str, Side], texts: list[str], repetitions: int) -> dict[str, Any]:
    """Return the sentences/s of each side, and its agreement with the first one, in fp32."""
    reference_name = next(iter(sides))
    embeddings: dict[str, np.ndarray] = {}

    def run(name: str) -> float:
        return timed(lambda: embeddings.update({name: np.asarray(sides[name].encode(texts))}))

    seconds = in_rounds({name: partial(run, name) for name in sides}, repetitions)
    rates = rate_table(seconds, len(texts), reference_name)
    reference = embeddings[reference_name]
    near = nearest(reference)
    for name, found in embeddings.items():
        shared = [len(np.intersect1d(*pair)) for pair in zip(near, nearest(found), strict=True)]
        rates[name]["nearest"] = float(np.mean(shared)) / near.shape[1]
        if (space := sides[name].space) is not None:
            cosines = cosine(found, space(reference))
            rates[name] |= {
                "cosine_min": float(cosines.min()),
                "cosine_mean": float(cosines.mean()),
            }
    return rates


def nearest(embeddings: np.ndarray) -> np.ndarray:
    """Return for each of n texts the rows of the `NEAREST` others of largest cosine (n, 10)."""
    unit = embeddings / np.maximum(np.linalg.norm(embeddings, axis=1, keepdims=True), 1e-12)
    similarities = unit @ unit.T
    np.fill_diagonal(similarities, -2)
    count = min(NEAREST, len(unit) - 1)
    return np.argpartition(-similarities, count - 1, axis=1)[:, :count]
