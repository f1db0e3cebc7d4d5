"""The model card of an export: usage, training settings, scores and limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from multitask.runs import other_than_defaults
from multitask.settings.config import RunConfig
from reports.run_tables import metric_rows
from reports.tables import markdown_table, shown
from serving.model import MultiTaskModel
from tasks.own_task import FILES

USE = {  # by the kind of export
    "sentence-transformers": """from sentence_transformers import SentenceTransformer

embeddings = SentenceTransformer("DIR").encode(["A cat sleeps."])""",
    "transformers": """from transformers import AutoModel, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("DIR"), AutoModel.from_pretrained("DIR")
inputs = tokenizer(["A cat sleeps."], padding=True, truncation=True, return_tensors="pt")
hidden = model(**inputs).last_hidden_state""",
    "onnx": """from onnxruntime import InferenceSession
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("DIR")
inputs = tokenizer(["A cat sleeps."], padding=True, truncation=True, return_tensors="np")
inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
embeddings, pooled = InferenceSession("DIR/model.onnx").run(None, inputs)
# `first` are the pooled first texts of pairs, or the single texts; `second` the second texts
heads = InferenceSession("DIR/heads.onnx")
inputs = {one.name: pooled for one in heads.get_inputs()}
found = dict(zip([one.name for one in heads.get_outputs()], heads.run(None, inputs)))""",
}
HEADS = """from serving import load

model = load("DIR")
model.predict([{example}])"""
QQP_CAVEAT = (
    "The encoder all-MiniLM-L6-v2 was trained on Quora's duplicate questions. So the scores on "
    "qqp are too high."
)
STS_CAVEAT = (
    "CS224N's STS is STS-B, split anew. An encoder that was trained on the official STS-B has "
    "seen part of this dev set."
)
EPOCH = {  # by the setting `keep`
    "best": "The best epoch was chosen by its scores on these dev examples.",
    "last": "The weights are from the last epoch. No epoch was chosen by its scores.",
}
PATHS = ("data", "init", "teacher", "encoder", "text", "nli", *FILES)  # settings
ALWAYS = ("mode", "limit", "epochs", "batch_size", "seed")
# Settings that are shown in other places, or that only concern the machine.
ELSEWHERE = ("tasks", "data", "encoder", "device", "sampling", "combiner", "optimizer lr")


def card(model: MultiTaskModel, metrics: Mapping[str, Any], kind: str) -> str:
    """Return the card as Markdown, with the metadata header of the Hugging Face hub.

    Its code names the folder DIR.
    """
    config, bi_encoder = model.config, model.model.bi_encoder
    encoder, normalised = Path(config.encoder).name, ", normalised" if bi_encoder.normalize else ""
    pairs = any(task.texts == 2 for task in model.tasks_by_name.values())
    example = '("A cat sleeps.", "A cat is asleep.")' if pairs else '"a film to love"'
    parts = [
        f"---\nlibrary_name: {kind}\npipeline_tag: sentence-similarity\ntags:\n"
        "- sentence-transformers\n- multi-task\n---",
        f"# {' + '.join(model.tasks)} on {encoder}",
        f"One encoder ({encoder}, {bi_encoder.width} wide, {bi_encoder.pooling} pooling"
        f"{normalised}) and a head for each of {', '.join(model.tasks)}.",
        "## Use",
        python(USE[kind])
        if model.embeds_texts()
        else "The encoder was not trained to embed single texts.",
        "The heads are in `heads.safetensors`, which this toolkit loads:",
        python(HEADS.format(example=example)),
        *classes(model),
        "## Training",
        markdown_table(["setting", "value"], settings(model)),
    ]
    if "dev" in metrics:
        table = markdown_table(["task", "metric", "dev", "test"], scores(metrics))
        parts += ["## Scores", table, EPOCH[config.keep]]
    caveats = [QQP_CAVEAT] if config.encoder == "minilm" and "qqp" in model.tasks else []
    caveats += [STS_CAVEAT] if "sts" in model.tasks else []
    caveats.append("Use the model only for the language and the kind of text of its training data.")
    return "\n\n".join([*parts, "## Limits", "\n".join(f"- {one}" for one in caveats)]) + "\n"


def classes(model: MultiTaskModel) -> list[str]:
    """Return the classes of the heads, in the order of the columns of their probabilities."""
    several = model.tasks_by_name.items()
    rows = [[name, ", ".join(task.kind.names)] for name, task in several if task.kind.columns]
    return [markdown_table(["task", "order of its probabilities"], rows)] if rows else []


def python(code: str) -> str:
    return f"```python\n{code}\n```"


def settings(model: MultiTaskModel) -> list[list[str]]:
    """Return rows with the main settings, the data, and other settings that are not defaults."""
    config = model.config
    always = {name: getattr(config, name) for name in ALWAYS}
    main = {name: str(value) for name, value in always.items() if value is not None}
    main |= {"lr": f"{config.optimizer.lr:g}", "sampling": config.sampling.name}
    main |= {"combiner": config.combiner.name}
    main |= {"longest text": f"{model.model.bi_encoder.tokenizer.max_tokens:,} tokens"}
    others = {
        name: shown(value)
        for name, value in other_than_defaults(without_paths(config.to_json())).items()
        if name not in ELSEWHERE and name.split()[0] not in ALWAYS
    }
    return data(config) + [[n.replace("_", " "), value] for n, value in (main | others).items()]


def data(config: RunConfig) -> list[list[str]]:
    """Return rows with the data folder of built-in tasks and the file names of own tasks."""
    built_in = [name for name in config.tasks if name not in config.own_tasks]
    rows = [[f"data of {', '.join(built_in)}", Path(config.data).name]] if built_in else []
    for name, one in config.own_tasks.items():
        files = [Path(file).name for file in dict.fromkeys(one.files.values())]
        rows.append([f"data of {name}", ", ".join([*dict.fromkeys(files), str(one.type)])])
    return rows


def scores(metrics: Mapping[str, Any]) -> list[list[str]]:
    """Return one row per task and metric of dev and test, then the overall scores."""
    return metric_rows(metrics["dev"], metrics.get("test", {}))


def without_paths(content: Any, key: str = "") -> Any:
    """Return settings as JSON for other machines: files and folders without directories.

    Other names, such as that of an encoder of the hub, stay.
    """
    if isinstance(content, Mapping):
        return {name: without_paths(one, name) for name, one in content.items()}
    if isinstance(content, list):
        return [without_paths(one, key) for one in content]
    path = Path(content) if key in PATHS and isinstance(content, str) else None
    return path.absolute().name if path and (path.is_absolute() or path.exists()) else content
