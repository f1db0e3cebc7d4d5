"""Widths and exits in training: the mean of the losses of every size, and the scores of each."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from plain import step_terms
from tolerances import assert_near, assert_near_in_norm, encoder_terms

from common.errors import EncoderError, SettingsError
from minbert import BiEncoder
from minbert.sizes import Size, Sizes
from minbert.words import build_bilstm
from multitask import RunConfig, train
from multitask.assembly import assemble
from multitask.loop.streams import next_batches
from multitask.passes import EncoderPass
from multitask.regularizers import Distillation
from serving.export import export
from tasks import CS224N, data_folder
from tasks.data import SoftTargets
from tasks.metrics import pearson

SIZES = {"widths": (16, 8), "exits": (1,)}
GRID = [Size(*one) for one in product((2, 1), (32, 16, 8))]
ONCE = {"combiner": "sum", "sampling": "round-robin"}
SMALL = {"encoder": "tiny", "epochs": 1, "limit": 24, "dev_limit": 20, "test_limit": 8}


def gradients(model):
    return torch.cat(
        [
            (torch.zeros_like(one) if one.grad is None else one.grad.to_dense()).flatten()
            for one in model.parameters()
        ]
    ).double()


def embeddings(model, batch, size, task=None):
    """The embeddings of a pass that ends after the layers of a size, with zeros from its width."""
    keep = (torch.arange(model.bi_encoder.width) < size.width).float()
    shallow = model.bi_encoder_of(task).smaller(layers=size.layers)
    return tuple(text * keep for text in batch.split(shallow.embed(batch)))


def explicit_losses(trainer, rows):
    """Each task's losses by size, each from a pass of its own."""
    found = {}
    for name, task in trainer.tasks.items():
        split = trainer.splits[name]["train"]
        targets = split.targets(rows[name], torch.device("cpu"))
        for size in GRID:
            texts = embeddings(trainer.model, split.batch(rows[name]), size, name)
            outputs = trainer.model.heads[name](*texts)
            losses = task.compute_losses(outputs, texts, targets)
            for objective, loss in losses.items():
                found.setdefault(objective, []).append(loss)
    return found


@pytest.mark.numeric
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"micro_batch": 3},
        {"branch": "top-1"},
        {"combiner": "uncertainty"},
        {"tasks": ("sst",), "objective": "lacon"},
        {"tasks": ("sst",), "objective": "epo"},
        {"tasks": ("qqp",), "task_options": {"qqp": {"loss": "with-contrastive"}}},
    ],
    ids=str,
)
def test_the_loss_of_an_objective_is_the_mean_over_sizes(make_trainer, changes):
    trainer = make_trainer(dropout=False, batch_size=8, **SIZES, **ONCE | changes)
    batches = next_batches(trainer.streams, np.arange(len(trainer.tasks)))
    expected = {
        objective: torch.stack(losses).mean()
        for objective, losses in explicit_losses(
            trainer, {name: rows for name, (rows,) in batches.items()}
        ).items()
    }
    result = trainer.gradient(batches)
    found = gradients(trainer.model)
    assert result.objectives == tuple(expected)
    terms = step_terms(trainer)
    values = torch.stack(list(expected.values())).detach()
    assert_near(result.losses, values, terms, scale=float(values.abs().max()))
    if not changes.keys() & {"combiner", "objective"}:  # otherwise weighed
        trainer.model.zero_grad(set_to_none=True)
        torch.stack(list(expected.values())).sum().backward()
        assert_near_in_norm(found, gradients(trainer.model), terms)


def test_a_share_without_examples_has_leaves_of_every_exit(make_trainer):
    trainer = make_trainer(only="sts", **SIZES)
    one = EncoderPass(trainer.model, [], 2, exits=(2, 1))
    assert [[text.shape for text in texts] for texts in one.by_exit] == [[(0, 32)] * 2] * 2


def test_a_regulariser_of_the_complete_size_keeps_its_weight(make_trainer):
    """SMART's term of the complete embeddings is added to the mean of the losses."""
    losses = {}
    for sizes, weight in product(({}, SIZES), (0.0, 1e6)):
        trainer = make_trainer(
            f"{sizes}{weight}", only="sts", dropout=False, smart_weight={"sts": weight}, **sizes
        )
        batches = next_batches(trainer.streams, np.arange(1))
        losses[len(trainer.model.sizes), weight] = trainer.gradient(batches).losses[0]
    whole = losses[1, 1e6] - losses[1, 0.0]
    assert whole > 1e-3 * losses[1, 0.0]
    cut = losses[len(GRID), 1e6] - losses[len(GRID), 0.0]
    assert_near(cut, whole, step_terms(trainer), scale=float(losses[1, 1e6]))


@pytest.mark.numeric
def test_a_teacher_teaches_every_size(make_trainer):
    settings = Distillation(weight={"sst": 1.0}, annealing=False)
    trainer = make_trainer(
        only="sst", dropout=False, regularizers=(settings,), teacher=("run",), **SIZES
    )
    split = trainer.splits["sst"]["train"]
    generator = torch.Generator().manual_seed(0)
    soft = torch.randn(len(split.examples), 5, generator=generator).softmax(-1)
    splits = trainer.gradient.losses.splits
    splits["sst"]["train"] = replace(split, soft=SoftTargets(soft))
    (rows,) = next_batches(trainer.streams, np.arange(1))["sst"]
    expected = []
    for size in GRID:
        logits = trainer.model.heads["sst"](*embeddings(trainer.model, split.batch(rows), size))
        teacher, student = soft[rows].double(), logits.double().log_softmax(-1)
        expected.append((teacher * (teacher.log() - student)).sum(1).mean())
    found = trainer.gradient({"sst": [rows]}).losses[0]
    assert_near(found, torch.stack(expected).mean(), step_terms(trainer))


def test_a_head_alone_learns_every_size(make_trainer):
    trainer = make_trainer(only="sst", freeze_encoder=True, **SIZES)
    before = trainer.model.encoder.state_dict()["layers.0.up.weight"].clone()
    trainer.train_epoch(1)
    assert torch.equal(before, trainer.model.encoder.state_dict()["layers.0.up.weight"])
    assert trainer.progress.step == 10


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes") / "run"
    options = {"sts": {"head": "cosine", "activation": "none"}}
    config = RunConfig(tasks=CS224N, task_options=options, **SIZES, **SMALL)
    return train(config, folder)


@pytest.mark.numeric
def test_metrics_have_the_scores_of_every_size_beside_the_ordinary_ones(run):
    dev, sizes = run.metrics["dev"], run.metrics["sizes"]
    assert [Size(one["layers"], one["width"]) for one in sizes] == GRID
    assert sizes[0]["dev"] == dev
    assert all(one["dev"].keys() == dev.keys() for one in sizes)
    assert len({one["dev"]["sts"]["pearson"] for one in sizes}) == len(GRID)
    task = assemble(run.config).tasks["sts"]
    examples = task.read(data_folder("sample"), "dev", SMALL["dev_limit"])
    terms = encoder_terms(run.model.model.encoder.config, 128)
    for one in sizes:
        u, v = (
            run.model.encode(texts, normalize=True, width=one["width"], layers=one["layers"])
            for texts in examples.texts
        )
        expected = pearson((u * v).sum(1), examples.targets)
        assert_near(one["dev"]["sts"]["pearson"], expected, terms, scale=1.0)


def test_the_sizes_do_not_change_the_shape_of_other_results(run, tmp_path):
    config = run.config.changed(widths=(), exits=())
    plain = train(config, tmp_path / "plain")
    assert "sizes" not in plain.metrics
    assert run.metrics.keys() - plain.metrics.keys() == {"sizes"}
    assert not (plain.folder / "checkpoint" / "best" / "sizes.json").exists()
    assert config.digest() != run.config.digest()


def test_the_encoder_remembers_its_sizes(run, tmp_path):
    sizes = Sizes((32, 16, 8), (2, 1))
    assert run.model.model.bi_encoder.sizes == sizes
    assert BiEncoder.from_pretrained(run.folder / "checkpoint" / "best").sizes == sizes
    for kind in ("sentence-transformers", "transformers"):
        export(run.folder, tmp_path / kind, kind)
        assert BiEncoder.from_pretrained(tmp_path / kind).sizes == sizes
        card = (tmp_path / kind / "README.md").read_text()
        assert "| layers | width | sst accuracy |" in card
    config = RunConfig(tasks=("sst",), init=str(run.folder), **SMALL)
    again = train(config, tmp_path / "again")
    assert again.model.model.bi_encoder.sizes == Sizes(), "trained further for one size only"


def test_pretraining_has_sizes_too(tmp_path):
    config = RunConfig(mode="pretrain", objective="simcse", tasks=("sst",), **SIZES, **SMALL)
    done = train(config, tmp_path / "run")
    found = [one["dev"]["simcse"]["spearman"] for one in done.metrics["sizes"]]
    assert len(found) == len(GRID)
    assert found[0] == done.metrics["dev"]["simcse"]["spearman"]
    assert done.model.sizes == Sizes((32, 16, 8), (2, 1))


# What is refused


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"widths": (8, 8)}, "widths: expected each number once, found 8 twice"),
        ({"exits": (1, 2, 1)}, "exits: expected each number once, found 1 twice"),
        ({"widths": (0,)}, "widths: expected a whole number from 1 to 1000000, found 0"),
    ],
)
def test_contradictions_are_refused(changes, line):
    with pytest.raises(SettingsError) as caught:
        RunConfig(tasks=("sst",), **changes)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"widths": (33,)}, "widths: expected from 1 to 32, the width of the encoder, found 33"),
        ({"exits": (3,)}, "exits: expected from 1 to 2, the number of its layers, found 3"),
        (
            {"exits": (1,), "objective": "lacon-fusion"},
            "widths and exits: expected heads that read embeddings of the encoder's pooling, "
            "found that of sst",
        ),
    ],
)
def test_sizes_that_an_encoder_or_a_head_does_not_have_are_refused(changes, line):
    with pytest.raises((EncoderError, SettingsError)) as caught:
        assemble(RunConfig(tasks=("sst",), encoder="tiny", limit=8, **changes))
    assert str(caught.value) == line


def test_a_bilstm_is_trained_for_widths_only(tmp_path):
    build_bilstm(tmp_path / "lstm", ["a cat sleeps"], units=8, embedding_size=12)
    small = SMALL | {"encoder": str(tmp_path / "lstm")}
    with pytest.raises(SettingsError, match="exits: expected a transformer, found a BiLSTM"):
        assemble(RunConfig(tasks=("sst",), exits=(1,), **small))
    done = train(RunConfig(tasks=("sst",), widths=(8,), **small), tmp_path / "run")
    assert [one["width"] for one in done.metrics["sizes"]] == [16, 8]
    stored = json.loads((tmp_path / "run" / "checkpoint" / "best" / "sizes.json").read_text())
    assert stored == {"widths": [16, 8], "exits": []}
