"""The same results on a GPU as on the CPU, and from run to run; see CONTRIBUTING.md."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tolerances import assert_near, assert_near_in_norm, encoder_terms, gradient_terms

from common.settings import methods
from minbert.bi_encoder import BiEncoder
from multitask import RunConfig, train
from multitask.combiners import Combiner
from multitask.loop.batches import next_batches
from multitask.loop.trainer import Trainer
from serving import load
from tasks import CS224N, build_task, data_folder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ("cpu", "cuda")


def texts() -> list[str]:
    examples = build_task("qqp").read(data_folder("sample"), "dev")
    return [text for column in examples.texts for text in column]


@pytest.mark.parametrize("encoder", ["tiny", "minilm"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_embeddings(encoder, precision):
    models = [BiEncoder.from_pretrained(encoder).to(device) for device in DEVICES]
    expected = models[0].encode(texts())
    found = models[1].encode(texts(), precision=precision)
    tokens = int(models[0].tokenizer(texts()).lengths.max())
    terms = encoder_terms(models[0].encoder.config, tokens)
    if precision == "fp32":
        assert_near_in_norm(found, expected, terms)
    else:  # inputs and outputs of each layer's products are rounded
        layers = models[0].encoder.config.num_layers
        cosines = (found * expected).sum(1)
        cosines /= np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
        assert (1 - cosines).max() < 12 * layers * (torch.finfo(torch.bfloat16).eps / 2) ** 2 * 8


@pytest.mark.parametrize("combiner", methods(Combiner))
def test_gradient_of_a_step(tmp_path, combiner):
    found = []
    for device in DEVICES:
        config = RunConfig(
            tasks=CS224N, encoder="tiny", combiner=combiner, limit=40,
            batch_size=8, precision="fp32", device=device, epochs=1,
        )  # fmt: skip
        trainer = Trainer(config, tmp_path)
        trainer.model.eval()  # dropout draws other masks on a GPU
        trainer.gradient(next_batches(trainer.streams, trainer.plan.steps(1)[0]), True, 0)
        found.append({name: p.grad for name, p in trainer.model.named_parameters()})
    terms = gradient_terms(trainer.model.encoder.config, 8 * 2 * 40)
    scale = max(float(g.abs().max()) for g in found[0].values() if g is not None)
    for name, expected in found[0].items():
        assert (expected is None) == (found[1][name] is None), name
        if expected is not None:
            assert_near(found[1][name].to_dense(), expected.to_dense(), terms, scale=scale)


def test_a_run_on_a_gpu_is_used_on_the_cpu(tmp_path):
    config = RunConfig(tasks=CS224N, encoder="tiny", combiner="pcgrad", limit=40, epochs=1)
    metrics = train(replace(config, device="cuda"), tmp_path / "run").metrics
    assert metrics["environment"]["gpu"] != "none"
    some = texts()[:20]
    on = [load(tmp_path / "run", device=device).encode(some) for device in DEVICES]
    assert_near_in_norm(on[1], on[0], 1 << 14)


def test_two_runs_on_a_gpu_are_the_same(tmp_path):
    config = RunConfig(tasks=CS224N, combiner="pcgrad", limit=100, epochs=1, dev_limit=50)
    for name in ("one", "two"):
        train(replace(config, device="cuda", precision="bf16"), tmp_path / name)
    files = [sorted((tmp_path / name / "predictions").iterdir()) for name in ("one", "two")]
    assert len(files[0]) == len(files[1]) > 0
    for one, two in zip(*files, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name
