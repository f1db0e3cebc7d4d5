"""Runs whose tasks have layers of their own."""

import json

import numpy as np
import pytest
from tolerances import assert_near, encoder_terms

import cli
from common.errors import Notice, SettingsError, UserError
from minbert.bi_encoder import BiEncoder
from multitask.assembly import scores_of
from multitask.runs import Run
from serving import load
from serving.export import export
from tasks import build_task, data_folder
from tasks.predictions import read_scores, scores_name

SHORT = ("--encoder", "tiny", "--epochs", "2", "--limit", "40", "--lr", "0.05")
PAIRS = [("A cat sleeps.", "A cat is asleep."), ("The sun.", "The moon."), ("A cat sleeps.", "no")]
TEXTS = ["A cat sleeps.", "The sun is up, and it will not go down.", "no"]


def train_here(folder, *flags):
    command = ["--mode", "multitask", "--tasks", *flags, *SHORT, "--output", str(folder)]
    assert cli.main(command) == 0
    return folder


@pytest.fixture(scope="module")
def branched(tmp_path_factory):
    """A run of three tasks, each with its own second layer; read only."""
    folder = tmp_path_factory.mktemp("branched") / "run"
    return train_here(folder, "sst", "qqp", "sts", "--branch", "top-1")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_tasks_together_have_the_predictions_of_each_alone(branched, precision):
    model = load(branched)
    together = model.predict(PAIRS, ["qqp", "sts"], precision)
    for task, found in together.items():
        alone = model.predict(PAIRS, [task], precision)[task]
        assert np.array_equal(alone.values, found.values)


def terms_of(model):
    config = model.model.encoder.config
    return encoder_terms(config, config.max_tokens)


@pytest.mark.numeric
def test_each_head_has_the_layers_of_its_task(branched):
    model = load(branched)
    for task in model.tasks:
        columns = build_task(task).read(data_folder("sample"), "dev").texts
        texts = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        found = model.predict(texts, [task])[task]
        values = found.values if found.probabilities is None else found.probabilities
        kept = read_scores(branched / "predictions" / scores_name(task, "dev")).values
        assert_near(values, kept, terms_of(model))


def test_embeddings_are_those_of_a_task_or_of_the_shared_encoder(branched, recwarn):
    model = Run(branched).model
    sst, sts = (model.encode(TEXTS, task=task) for task in ("sst", "sts"))
    assert not recwarn.list
    with pytest.warns(Notice) as caught:
        shared = model.encode(TEXTS)
    assert [str(one.message) for one in caught] == [
        "the embeddings are of the shared encoder; for a branch, give its task: sst, qqp, sts"
    ]
    assert caught[0].filename == __file__
    for one, other in ((sst, sts), (sst, shared), (sts, shared)):
        assert np.abs(one - other).max() > 1e-3
    opened = BiEncoder.from_pretrained(branched / "best")
    assert np.array_equal(shared, opened.encode(TEXTS))
    with pytest.raises(SettingsError, match="task: expected one of sst, qqp, sts, found cola"):
        model.encode(TEXTS, task="cola")


def test_an_export_of_a_task_has_its_layers_its_head_and_its_scores_only(branched, tmp_path):
    model, texts_of = load(branched), {}
    for task in ("sst", "sts"):
        folder = tmp_path / task
        export(branched, folder, "transformers", task=task)
        alone = load(folder)
        assert (alone.tasks, alone.config.branch) == ((task,), None)
        expected, found = model.predict(PAIRS, [task])[task], alone.predict(PAIRS)[task]
        names = "values" if task == "sts" else "probabilities"
        assert_near(getattr(found, names), getattr(expected, names), terms_of(model))
        texts_of[task] = BiEncoder.from_pretrained(folder).encode(TEXTS)
        assert np.array_equal(texts_of[task], model.encode(TEXTS, task=task))
        card = (folder / "README.md").read_text("utf-8")
        scores = json.loads((branched / "metrics.json").read_text())["dev"]
        metric, value = next(iter(scores[task].items()))
        assert f"| {task} | {metric} | {value:.4f} |" in card
        assert "| qqp |" not in card
    assert not np.allclose(texts_of["sst"], texts_of["sts"])


def test_exports_without_a_task_of_the_run_are_refused(branched, tmp_path):
    line = "task: the run has branches; choose one of its tasks: sst, qqp, sts"
    for task, expected in ((None, line), ("cola", "task: expected one of sst, qqp, sts, found")):
        with pytest.raises(UserError, match=expected):
            export(branched, tmp_path / "out", "transformers", task=task)
        assert not (tmp_path / "out").exists()


def test_a_teacher_with_branches_teaches_with_that_of_the_task(branched):
    run, task = Run(branched), build_task("sts")
    examples = task.read(data_folder("sample"), "dev")
    found = scores_of(branched, run.config, task, examples)
    kept = read_scores(branched / "predictions" / scores_name("sts", "dev")).values
    assert_near(found.numpy(), kept, terms_of(run.model))
