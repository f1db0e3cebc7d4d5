"""The model card of an export: usage, training settings, scores and limits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from multitask.config_tasks import without_paths
from multitask.settings.config import RunConfig
from multitask.stored_runs import other_than_defaults
from reports.run_tables import CALIBRATED, calibration_table, metric_rows
from reports.tables import Table, markdown_table, shown
from serving.export_kinds import KINDS
from serving.head_formulas import reason_without
from serving.model import MultiTaskModel

QQP_CAVEAT = (
    "The encoder all-MiniLM-L6-v2 was trained on duplicates of Quora's questions: its scores on "
    "qqp are too high."
)
STS_CAVEAT = (
    "The CS224N split of STS reshuffles STS-B: an encoder that has seen official STS-B has seen "
    "part of this dev set."
)
# How a path begins that is absolute, or relative to ~ or .. .
PATH = re.compile(r"~|\.\.[\\/]|[\\/]|[A-Za-z]:[\\/]")
# The folders of such a path inside of a word, such as x=/home/me/f.csv:label=y.
PLACE = re.compile(
    r"(?<![^=:,])(?:(?:~[^/\\]*/|\.\./|/(?!/))(?:(?:\\.|[^/\\:=,])+/)*"
    r"|(?:[A-Za-z]:\\|\.\.\\|\\\\)(?:[^\\:=,]+\\)*)"
)
EPOCH = {  # by the setting `keep`
    "best": "The best epoch was chosen on the dev examples whose scores these are.",
    "last": "The weights are those of the last epoch; no epoch was chosen by these scores.",
}
ALWAYS = ("mode", "limit", "epochs", "batch_size", "seed")
# Settings that are shown in other places, or that only concern the machine.
ELSEWHERE = ("tasks", "own_tasks", "data", "encoder", "device")
CALIBRATION = (
    f"By temperature scaling. {CALIBRATED}. `MultiTaskModel` reads the temperatures from "
    "`calibration.json`; code without this toolkit has the probabilities before it."
)
HEADS = """```python
from serving import MultiTaskModel

model = MultiTaskModel.load("DIR")
model.predict([{example}])
```"""


def card(model: MultiTaskModel, metrics: Mapping[str, Any], kind: str) -> str:
    """Return the card as Markdown, with the metadata header of the Hugging Face hub.

    Its code names the folder DIR.
    """
    config = model.config
    pooling = model.model.bi_encoder.pooling
    normalised = ", normalised" if model.model.bi_encoder.normalize else ""
    parts = [
        f"---\nlibrary_name: {kind}\npipeline_tag: sentence-similarity\ntags:\n"
        "- sentence-transformers\n- multi-task\n---",
        f"# {' + '.join(model.tasks)} on {Path(config.encoder).name}",
        f"One encoder ({Path(config.encoder).name}, {model.model.bi_encoder.width} wide, {pooling} "
        f"pooling{normalised}) and a head for each of {', '.join(model.tasks)}."
        + other_inputs(model),
        "## Use",
        *([KINDS[kind].use] if model.embeds_texts() else []),
        *KINDS[kind].heads_elsewhere(model),
        "The heads are in `heads.safetensors`, which this toolkit loads:",
        HEADS.format(example=example(model)),
        "## Training",
        markdown_table(["setting", "value"], settings(model) + lengths(model, metrics)),
    ]
    if command := without_places(str(metrics.get("command") or "")):
        parts.append(f"```\n{command}\n```")
    if "dev" in metrics:
        parts += ["## Scores", markdown_table(*score_table(metrics)), EPOCH[config.keep]]
    if calibrated := metrics.get("calibration"):
        parts += ["## Calibration", markdown_table(*calibration_table(calibrated)), CALIBRATION]
    caveats = [QQP_CAVEAT] if config.encoder == "minilm" and "qqp" in model.tasks else []
    caveats += [STS_CAVEAT] if "sts" in model.tasks else []
    caveats.append("The model was trained for the language and the kind of text of its data only.")
    return "\n\n".join([*parts, "## Limits", "\n".join(f"- {one}" for one in caveats)]) + "\n"


def other_inputs(model: MultiTaskModel) -> str:
    """Return sentences about the heads that do not use the exported embeddings."""
    by_reason: dict[str, list[str]] = {}
    for name in model.tasks:
        if reason := reason_without(model, name):
            by_reason.setdefault(reason, []).append(name)
    found = [f" The head of {' and of '.join(names)} {why}." for why, names in by_reason.items()]
    if not model.embeds_texts():
        found.append(" The encoder was not trained to embed single texts.")
    return "".join(found)


def without_places(command: str) -> str:
    """Return a command in which paths are shortened to the file name, but for relative ones.

    Relative paths are kept, because they look like names of models, `owner/name`. Return "" if the
    text is not a command.
    """
    try:
        return shlex.join(map(without_place, shlex.split(command)))
    except ValueError:
        return ""


def without_place(word: str) -> str:
    """Return a word of a command without the folders of its paths."""
    if PATH.match(word):
        return re.split(r"[\\/]", word.rstrip("\\/"))[-1]
    return PLACE.sub("", word)


def example(model: MultiTaskModel) -> str:
    pairs = any(task.texts == 2 for task in model.tasks_by_name.values())
    return '("A cat sleeps.", "A cat is asleep.")' if pairs else '"a film to love"'


def settings(model: MultiTaskModel) -> list[list[str]]:
    """Return rows with the main settings, the data, and other settings that are not defaults."""
    config = model.config
    rows = [[name.replace("_", " "), str(getattr(config, name))] for name in ALWAYS]
    rows += [["lr", f"{config.optimizer.lr:g}"], ["sampling", config.sampling.name]]
    rows += [["combiner", config.combiner.name]]
    rows[1:1] = data(config)
    return rows + [
        [name.replace("_", " "), shown(value)]
        for name, value in other_than_defaults(without_paths(config)).items()
        if name not in (*ALWAYS, *ELSEWHERE, "sampling", "combiner", "adamw lr")
        and value is not None
    ]


def data(config: RunConfig) -> list[list[str]]:
    """Return rows with the data folder of built-in tasks and the file names of own tasks."""
    built_in = [name for name in config.tasks if name not in config.own_tasks]
    title = f"data of {', '.join(built_in)}" if config.own_tasks else "data"
    rows = [[title, Path(config.data).name]] if built_in else []
    for name, one in config.own_tasks.items():
        files = [Path(file).name for file in one.files.values()]
        rows.append([f"data of {name}", ", ".join([*dict.fromkeys(files), str(one.type)])])
    return rows


def lengths(model: MultiTaskModel, metrics: Mapping[str, Any]) -> list[list[str]]:
    """Return rows with the encoder's token limit and the number of training texts cut to it."""
    tokenizer = model.model.bi_encoder.tokenizer
    rows = [["longest text", f"{tokenizer.max_tokens:,} tokens"]]
    if counts := metrics.get("cut_texts"):
        shown = [f"{name} {cut:,} of {texts:,}" for name, (cut, texts) in counts.items()]
        rows.append(["longer training texts, cut", ", ".join(shown)])
    return rows


def score_table(metrics: Mapping[str, Any]) -> Table:
    """Return header and rows of `scores`, with the number of scored examples where it is known."""
    header, rows = ["task", "metric", "dev", "test"], scores(metrics)
    for split, counts in metrics.get("examples", {}).items():
        place = header.index(split)
        found = [f"{counts[row[0]]:,}" if row[place] and row[0] in counts else "" for row in rows]
        if any(found):
            header = [*header, f"{split} examples"]
            rows = [[*row, cell] for row, cell in zip(rows, found, strict=True)]
    return header, rows


def scores(metrics: Mapping[str, Any]) -> list[list[str]]:
    """Return one row per task and metric of dev and test, then the overall scores."""
    return metric_rows(metrics["dev"], metrics.get("test", {}))
