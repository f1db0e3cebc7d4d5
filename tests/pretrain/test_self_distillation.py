"""Self-distillation: the loss of every size against its definition, its texts, its refusals."""

import math

import numpy as np
import pytest
import torch
from tolerances import assert_near, encoder_terms

from common.errors import SettingsError
from minbert import BiEncoder
from minbert.sizes import Size, Sizes
from multitask import RunConfig, train
from multitask.assembly import assemble
from multitask.config_tasks import build_tasks
from multitask.loop.trainer import Trainer
from pretrain.texts import training_sentences
from tasks import build_task, data_folder

SIZES = {"widths": (16, 8), "exits": (1,)}
CONFIG = RunConfig(
    mode="pretrain",
    objective="self-distillation",
    tasks=("sst",),
    encoder="tiny",
    precision="fp32",
    limit=24,
    dev_limit=8,
    **SIZES,
)


def cosine(u, v):
    return sum(u * v) / math.sqrt(sum(u * u) * sum(v * v))


def test_each_sentence_is_read_once():
    _, model, splits = assemble(CONFIG)
    train_split = splits["self-distillation"]["train"]
    found = training_sentences([build_task("sst")], data_folder("sample"), 24)
    assert len(train_split.examples) == len(found)
    assert len(train_split.row_tokens) == 1
    assert len(splits["self-distillation"]["dev"].row_tokens) == 2, "pairs of STS"
    assert model.sizes == [Size(e, width) for e in (2, 1) for width in (32, 16, 8)]


@pytest.mark.numeric
def test_the_loss_is_the_mean_distance_of_every_size_to_the_encoder_before_the_run(tmp_path):
    chosen, model, splits = assemble(CONFIG)
    trainer = Trainer(model, chosen, splits, CONFIG, tmp_path)
    model.eval()  # no dropout
    start = BiEncoder.from_pretrained("tiny")
    sentences = training_sentences([build_task("sst")], data_folder("sample"), 24)
    rows = np.array([3, 1, 20, 7, 0, 11])
    texts = [sentences[row] for row in rows]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # another encoder than that of the start
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=generator))
    distances = []
    for size in model.sizes:
        own = model.bi_encoder.encode(texts, width=size.width, layers=size.layers)
        for u, v in zip(own.astype(float), start.encode(texts).astype(float), strict=True):
            share = math.sqrt(sum(v[: size.width] ** 2) / sum(v**2))
            distances.append(1 - share * cosine(u, v[: size.width]))
    found = trainer.gradient({"self-distillation": [rows]}).losses[0]
    assert_near(
        found, torch.tensor(distances).mean(), encoder_terms(model.encoder.config, 128), scale=1.0
    )


def test_a_run_reads_a_file_and_starts_others(tmp_path):
    (tmp_path / "own.txt").write_text("".join(f"Sentence {i} of a file.\n" for i in range(20)))
    config = CONFIG.changed(tasks=(), text=str(tmp_path / "own.txt"), batch_size=4)
    done = train(config, tmp_path / "run")
    assert done.metrics["steps"] == 5
    assert done.model.sizes == Sizes((32, 16, 8), (2, 1))
    further = RunConfig(
        tasks=("sst",), encoder="tiny", limit=16, epochs=1, init=str(tmp_path / "run"), **SIZES
    )
    assert len(train(further, tmp_path / "further").metrics["sizes"]) == 6


def test_sentences_that_differ_in_case_have_targets_of_their_own(tmp_path):
    file = tmp_path / "own.txt"
    file.write_text("A cat.\na cat.\nThe dog barks.\nTHE  DOG barks.\nSoup was cold.\n")
    config = CONFIG.changed(tasks=(), text=str(file), limit=None)
    (task,) = build_tasks(config).values()
    examples = task.read(data_folder("sample"), "train")
    assert examples.targets.tolist() == [0, 1, 2, 3, 4]
    own = BiEncoder.from_pretrained("tiny").encode(examples.texts[0])
    loss = task.kind.loss((torch.from_numpy(own),), torch.from_numpy(examples.targets))
    assert_near(loss, torch.tensor(0.0), 128, scale=1.0)


def test_a_run_without_further_sizes_is_refused():
    with pytest.raises(SettingsError) as caught:
        CONFIG.changed(widths=(), exits=())
    line = "objective self-distillation: expected widths or exits, found none"
    assert str(caught.value) == line
