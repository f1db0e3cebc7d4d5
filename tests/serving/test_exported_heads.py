"""Heads of every kind give the same scores in ONNX and by the reader in the model card."""

import re
from pathlib import Path

import numpy as np
import pytest
from tolerances import assert_near, model_terms

import tasks.heads
import tasks.sample
from minbert.bi_encoder import BiEncoder
from multitask import RunConfig, task
from multitask.config_tasks import build_tasks
from multitask.model import EncoderWithHeads
from serving import MultiTaskModel
from serving.card_reader import reader, reason_without_reader
from serving.export import export, write
from serving.head_formulas import FORMULAS, exported_heads
from tasks.heads import JointSimilarity

OWN = Path(tasks.sample.__file__).parent / "own"
REQUESTS = f"{OWN}/requests.csv:text=message"
ALIKE = f"alike={OWN}/alike.csv:type=similarity,text=One guest says,text=Another guest says"
ALIKE += ",label=How alike (0-10),low=-2,high=10"
PAIRS = f"both={REQUESTS},text=tags,type=classification,label=urgency"
REPLIES = f"{OWN}/replies.csv:text=better"
RUNS = {  # name -> tasks and further settings
    "default": ((task("sst"), task("qqp"), task("sts"), ALIKE, PAIRS), {}),
    "baselines": (
        (
            task("sst", head="softmax"),
            task("qqp", head="concat"),
            task("sts", head="cosine"),
            f"tags={REQUESTS},type=multi-label,label=tags",
        ),
        {},
    ),
    "numbers": (
        (
            f"minutes={REPLIES},type=regression,label=minutes",
            f"two={REPLIES},text=worse,type=regression,label=minutes",
        ),
        {},
    ),
    "two views": (("sst", "qqp"), {"objective": "cl"}),
}
TEXTS = ["A film to love, isn't it?", "Too long.", "no"]
OTHERS = ["It's a film to love", "The bed was hard.", "Größe? 🙂 " * 20]


@pytest.fixture(scope="module", params=RUNS)
def model(request):
    """Encoder and heads with random weights, embeddings of unit length."""
    names, further = RUNS[request.param]
    chosen = tuple(task(one) if isinstance(one, str) and "=" in one else one for one in names)
    config = RunConfig(tasks=chosen, encoder="tiny", **further)
    encoder = BiEncoder.from_pretrained("tiny")
    encoder.normalize = True
    return MultiTaskModel(EncoderWithHeads(encoder, build_tasks(config), 1), config)


def expected(model, name):
    """The probabilities, or the numbers, of the pairs or the first texts."""
    texts = list(zip(TEXTS, OTHERS, strict=True))
    found = model.predict(texts, [name])[name]
    return found.values if found.probabilities is None else found.probabilities


@pytest.mark.slow
def test_onnx_runtime_gives_the_scores_of_every_head(model, tmp_path):
    from onnxruntime import InferenceSession

    write(model, {}, tmp_path, "onnx")
    encoder = InferenceSession(tmp_path / "model.onnx")
    heads = InferenceSession(tmp_path / "heads.onnx")

    def pooled(name):
        tokens = model.tokens([TEXTS, OTHERS], [name])[name]
        return [encoder.run(["pooled"], padded(one))[0] for one in tokens]

    def padded(tokens):
        mask = np.arange(tokens.lengths.max()) < tokens.lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = tokens.ids
        return {"input_ids": ids, "attention_mask": mask.astype(np.int64)}

    outputs = [one.name for one in heads.get_outputs()]
    assert [name.partition(".")[0] for name in outputs] == list(model.tasks)
    for output in outputs:
        name = output.partition(".")[0]
        vectors = pooled(name)
        inputs = {one.name: vectors[-1] for one in heads.get_inputs()} | {"first": vectors[0]}
        (found,) = heads.run([output], inputs)
        assert_near(found, expected(model, name), model_terms(model))
        assert output.endswith("values" if found.ndim == 1 else "probabilities")
    names, page = {}, (tmp_path / "README.md").read_text("utf-8")
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        exec(code.replace('"DIR', f'"{tmp_path}'), names)
    assert list(names["found"]) == outputs


@pytest.mark.slow
def test_the_reader_in_the_card_gives_the_scores_of_every_head(model, tmp_path):
    write(model, {}, tmp_path, "sentence-transformers")
    page = (tmp_path / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(import torch\n.*?)```", page, re.DOTALL)
    assert len(code.splitlines()) <= 60
    modules = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE))
    assert modules == {"torch", "safetensors", "sentence_transformers"}
    names = {}
    exec(code.replace('"DIR"', repr(str(tmp_path))), names)
    assert list(names["HEADS"]) == list(model.tasks)
    for name, one in model.tasks_by_name.items():
        found = names["predict"](name, *[TEXTS, OTHERS][: one.texts]).numpy()
        assert_near(found, expected(model, name), model_terms(model))
        columns = names["HEADS"][name][2]
        assert len(columns) == (found.shape[1] if found.ndim > 1 else 0)


def test_every_class_of_heads_is_exported_or_refused():
    found = {
        one
        for one in vars(tasks.heads).values()
        if getattr(one, "__module__", "") == "tasks.heads" and hasattr(one, "forward")
    }
    assert found - {JointSimilarity} <= FORMULAS.keys()


def test_heads_of_joint_pairs_are_left_out_in_one_line(trained, tmp_path):
    line = "own: only this toolkit uses its head, which reads both texts of a pair as one sequence"
    for kind in ("onnx", "sentence-transformers"):
        assert export(trained, tmp_path / kind, kind) == [line]
    loaded = MultiTaskModel.load(trained)
    assert exported_heads(loaded) == ["sst", "qqp", "sts"]
    assert '"own"' not in reader(loaded)


def test_a_head_whose_formula_differs_has_no_reader(trained, monkeypatch):
    loaded = MultiTaskModel.load(trained)
    head = loaded.model.heads["sst"]
    forward = type(head).forward
    monkeypatch.setattr(head, "forward", lambda u: 2 * forward(head, u), raising=False)
    code = reader(loaded)
    assert "'qqp'" in code
    assert "'sst'" not in code
    assert reason_without_reader(loaded, "sst") == "has no formula"
