"""Heads of every kind give the same scores in ONNX."""

import re

import numpy as np
import pytest
from tolerances import assert_near, model_terms

from minbert.bi_encoder import BiEncoder
from multitask import RunConfig, table_tasks, task
from multitask.config_tasks import build_tasks
from multitask.model import EncoderWithHeads
from serving import MultiTaskModel
from serving.export import export, write
from tasks import data_folder

OWN = data_folder("sample") / "own"
HOW = "alike=How alike (0-10):type=similarity,low=-2,high=10"
SAID = ["One guest says", "Another guest says"]
(ALIKE,) = table_tasks(OWN / "alike.csv", text=SAID, labels=[HOW])
REQUESTS, MULTI = OWN / "requests.csv", "tags:type=multi-label"
(PAIRS,) = table_tasks(REQUESTS, text=["message", "tags"], labels=["both=urgency"])
(TAGS,) = table_tasks(REQUESTS, text="message", labels=[MULTI])
NUMBERS = [
    *table_tasks(OWN / "replies.csv", text="better", labels=["one=minutes:type=regression"]),
    *table_tasks(
        OWN / "replies.csv", text=["better", "worse"], labels=["two=minutes:type=regression"]
    ),
]
BASELINES = task("sst", head="softmax"), task("qqp", head="concat"), task("sts", head="cosine")
RUNS = {  # name -> tasks and further settings
    "default": ((task("sst"), task("qqp"), task("sts"), ALIKE, PAIRS), {}),
    "baselines": ((*BASELINES, TAGS), {}),
    "numbers": (NUMBERS, {}),
    "two views": (("sst", "qqp"), {"objective": "cl"}),
}
TEXTS = ["A film to love, isn't it?", "Too long.", "no"]
OTHERS = ["It's a film to love", "The bed was hard.", "Größe? 🙂 " * 20]


@pytest.fixture(scope="module", params=RUNS)
def model(request):
    """Encoder and heads with random weights, embeddings of unit length."""
    chosen, further = RUNS[request.param]
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
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    exec(code.replace('"DIR', f'"{tmp_path}'), names)
    assert list(names["found"]) == outputs


def test_heads_of_joint_pairs_are_left_out_in_one_line(trained, tmp_path):
    line = "own: not in heads.onnx, because its head reads both texts of a pair as one sequence"
    assert export(trained, tmp_path / "onnx", "onnx") == [line]
