"""Distillation: what students learn from finished runs, and what is refused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from common.errors import RunError, SettingsError
from losses import soft_divergence
from multitask import RunConfig, train
from multitask.assembly import soft_targets
from multitask.loop.evaluation import score_split
from multitask.loop.trainer import Trainer
from multitask.regularizers import Distillation
from tasks import build_task
from tasks.own_tasks import task

SETTINGS = {"encoder": "tiny", "epochs": 1, "limit": 24, "dev_limit": 8, "test_limit": 8}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """Train one task, and return the folder of its run."""
    root = tmp_path_factory.mktemp("teachers")

    def run(task, **changes):
        config = RunConfig(tasks=(task,), **SETTINGS | changes)
        folder = root / f"{next(iter(config.tasks))}-{config.digest()}"
        return folder if folder.exists() else train(config, folder).folder

    return run


def student(*runs, tasks=("sst", "sts"), **changes):
    return RunConfig(tasks=tasks, teacher=tuple(map(str, runs)), **SETTINGS | changes)


def a_pass(soft, progress):
    """A pass of three examples with random outputs, labels and embeddings."""
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    targets = torch.tensor([0, 3, 4])
    return SimpleNamespace(
        task=build_task("sst"),
        outputs=outputs,
        loss=F.cross_entropy(outputs, targets),
        soft=soft,
        progress=progress,
    )


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("progress", [0.0, 0.25])
def test_the_loss_is_a_mean_of_labels_and_teacher(temperature, progress):
    soft = torch.rand(3, 5, dtype=torch.float64).softmax(-1)
    clean, share = a_pass(soft, progress), 0.5 * (1 - progress)
    settings = Distillation(weight={"sst": 0.5}, temperature=temperature)
    total = clean.loss + 0.5 * settings.term(clean)
    expected = 0.0
    for p, row in zip(soft, clean.outputs, strict=True):  # temperature^2 x KL(teacher, student)
        q, p = (row / temperature).softmax(0), (p.log() / temperature).softmax(0)
        expected += temperature**2 * sum(a * (a / b).log() for a, b in zip(p, q, strict=True)) / 3
    torch.testing.assert_close(total, (1 - share) * clean.loss + share * expected)


def test_equal_distributions_have_no_divergence_and_zeros_no_infinity():
    p = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    assert float(soft_divergence(p, p, 2.0)) == 0
    assert torch.isfinite(soft_divergence(p, p.flip(1), 2.0))


def test_a_student_has_the_scores_of_its_teachers(teacher):
    """Scores are in the order of the training examples, and a mean over several teachers."""
    runs = [teacher("sst"), teacher("sst", seed=1)]
    alone = [soft_targets(student(run))["sst"] for run in runs]
    both = soft_targets(student(*runs))
    assert list(both) == ["sst"]
    torch.testing.assert_close(both["sst"], (alone[0] + alone[1]) / 2)
    trainer = Trainer(RunConfig(tasks=("sst",), init=str(runs[0]), **SETTINGS), runs[0])
    train_split = trainer.splits["sst"]["train"]
    rows = np.arange(5, 9)
    with torch.inference_mode():
        trainer.model.eval()
        texts = trainer.model.embed(train_split.batch(rows), "sst")
        expected = trainer.tasks["sst"].scores(trainer.model.heads["sst"], texts)
    torch.testing.assert_close(alone[0][rows], expected, atol=1e-5, rtol=1e-4)


def test_only_tasks_with_a_weight_learn_from_a_teacher(teacher):
    sst, sts = teacher("sst"), teacher("sts")
    config = student(sst, sts, regularizers=Distillation({"sst": 1.0}))
    with pytest.raises(SettingsError, match=r"teacher: .*sts.* has none of the tasks sst"):
        soft_targets(config)
    assert list(soft_targets(replace(config, teacher=(str(sst),)))) == ["sst"]


@pytest.mark.parametrize("name", ["qqp", "sts"])
def test_a_teacher_may_read_both_texts_as_one(name, teacher):
    joint = {"name": name, "pair": "joint"}
    read = teacher(joint)
    config = student(read, tasks=(name,))
    found = soft_targets(config)[name]
    trainer = Trainer(RunConfig(tasks=(joint,), init=str(read), **SETTINGS), read)
    expected = score_split(trainer.model, trainer.tasks[name], trainer.splits[name]["train"])
    assert np.array_equal(found.numpy(), expected)


def test_a_run_with_a_teacher_resumes_bit_for_bit(teacher, tmp_path):
    config = student(teacher("sst"), epochs=2, regularizers=Distillation(1.0))
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    whole = Trainer(config, tmp_path / "whole")
    whole.fit()
    broken = Trainer(config, tmp_path / "broken")
    broken.train_epoch(1)
    broken.save()
    again = Trainer(config, tmp_path / "broken")
    assert again.resume()
    again.fit()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name


def test_a_teacher_of_other_classes_is_refused(teacher, tmp_path):
    texts = [f"text {row}" for row in range(24)]
    two, three = (
        task(texts, [*labels] * (24 // len(labels)), name="mood", folder=tmp_path)
        for labels in ("yn", "ynm")
    )
    with pytest.raises((SettingsError, RunError), match="the classes of task mood differ"):
        soft_targets(student(teacher(two), tasks=(three,)))
