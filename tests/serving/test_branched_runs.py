"""Runs whose tasks have layers of their own: one folder, and one pass below the branches."""

import numpy as np
import pytest

import cli
from minbert.bi_encoder import BiEncoder
from minbert.encoder import Layer
from serving import MultiTaskModel
from serving.export import export

SHORT = ("--encoder", "tiny", "--epochs", "2", "--limit", "40", "--adapter-lr", "0.05")
PAIRS = [("A cat sleeps.", "A cat is asleep."), ("The sun.", "The moon."), ("A cat sleeps.", "no")]
TEXTS = ["A cat sleeps.", "The sun is up, and it will not go down.", "no"]


def trained(folder, *flags):
    command = ["--mode", "multitask", "--tasks", *flags, *SHORT, "--output", str(folder)]
    assert cli.main(command) == 0
    return folder


@pytest.fixture(scope="module")
def branched(tmp_path_factory):
    """A run of three tasks, each with its own second layer; read only."""
    folder = tmp_path_factory.mktemp("branched") / "run"
    return trained(folder, "sst", "qqp", "sts", "--branch", "2")


@pytest.fixture(scope="module")
def partly(tmp_path_factory):
    """A run of two tasks on the same texts, one of which has its own second layer; read only."""
    folder = tmp_path_factory.mktemp("partly") / "run"
    return trained(folder, "qqp", "sts", "--branch", "top-1", "--adapter-only", "sts")


@pytest.fixture
def passes(monkeypatch):
    """The number of tokens of each call of a layer."""
    seen = []
    forward = Layer.forward

    def counted(self, hidden, *more):
        seen.append(len(hidden))
        return forward(self, hidden, *more)

    monkeypatch.setattr(Layer, "forward", counted)
    return seen


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_tasks_that_read_the_same_texts_share_the_layers_below_their_branches(
    branched, partly, passes, precision
):
    for folder in (branched, partly):
        model = MultiTaskModel.load(folder)
        alone = {task: model.predict(PAIRS, [task], precision)[task] for task in ("qqp", "sts")}
        assert len(passes) == 4
        passes.clear()
        together = model.predict(PAIRS, ["qqp", "sts"], precision)
        assert len(passes) == 3, "the first layer is computed once"
        passes.clear()
        for task, found in alone.items():
            assert np.array_equal(together[task].values, found.values)


def test_int8_that_is_not_used_keeps_the_branches_apart(branched, monkeypatch):
    monkeypatch.setattr("minbert.int8_products.has_int8", lambda: False)
    model = MultiTaskModel.load(branched)
    together = model.predict(PAIRS, ["qqp", "sts"], "int8")
    for task, found in together.items():
        alone = model.predict(PAIRS, [task], "int8")[task]
        assert np.array_equal(found.values, alone.values)


def test_tasks_that_read_other_texts_have_their_own_pass(branched, passes):
    model = MultiTaskModel.load(branched)
    alone = model.predict(PAIRS, ["sst"])["sst"]
    passes.clear()
    together = model.predict(PAIRS)
    assert len(passes) == 2 + 3
    assert np.array_equal(together["sst"].values, alone.values)


def test_an_export_in_one_folder_has_all_branches(branched, partly, tmp_path):
    for run in (branched, partly):
        folder = tmp_path / run.parent.name
        assert export(run, folder, "minbert") == []
        found, model = MultiTaskModel.load(folder), MultiTaskModel.load(run)
        assert found.tasks == model.tasks
        for task, one in model.predict(PAIRS).items():
            assert np.array_equal(found.predict(PAIRS)[task].values, one.values)
        for task in model.tasks:
            assert np.array_equal(found.encode(TEXTS, task=task), model.encode(TEXTS, task=task))
        card = (folder / "README.md").read_text("utf-8")
        assert 'MultiTaskModel.load("DIR").encode(["A cat sleeps."])' in card


def test_an_export_of_a_task_has_the_layers_that_it_uses(partly, tmp_path):
    model = MultiTaskModel.load(partly)
    embeddings = {}
    for task in model.tasks:
        folder = tmp_path / task
        export(partly, folder, "transformers", task=task)
        embeddings[task] = BiEncoder.from_pretrained(folder, "mean").encode(TEXTS)
        assert np.array_equal(embeddings[task], model.encode(TEXTS, task=task))
    assert not np.allclose(embeddings["qqp"], embeddings["sts"])


def test_the_shared_layer_of_the_task_without_a_branch_serves_it(partly):
    model = MultiTaskModel.load(partly)
    with pytest.warns(match="embeddings of the shared encoder"):
        shared = model.encode(TEXTS)
    assert np.array_equal(model.encode(TEXTS, task="qqp"), shared)
