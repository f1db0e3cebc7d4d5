"""Tasks of one table: each row is encoded once, and each task has its own loss."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain import step_terms
from tolerances import assert_near, assert_near_in_norm

from multitask.assembly import assemble
from multitask.config_tasks import build_tasks
from multitask.loop.evaluation import score_split, score_splits
from multitask.loop.streams import next_batches
from multitask.loop.trainer import Trainer
from multitask.regularizers import Smart
from tasks.own_tasks import task

ONCE = {"combiner": "sum", "sampling": "round-robin"}
LABELS = {"topic": ("room", "food", ""), "urgent": ("yes", "no", "", "no"), "mood": ("a", "b", "c")}


@pytest.fixture
def table(tmp_path):
    """Files of a table with three label columns, two of which have blanks; its tasks."""
    for split, count in (("train", 37), ("dev", 11), ("test", 7)):
        lines = ["number,text,topic,urgent,mood"]
        for row in range(count):
            labels = [values[row % len(values)] for values in LABELS.values()]
            lines.append(f"{split}{row},guest {'very ' * (row % 5)}no {row},{','.join(labels)}")
        (tmp_path / f"{split}.csv").write_text("\n".join(lines))
    files = f"{tmp_path}/train.csv:dev={tmp_path}/dev.csv,test={tmp_path}/test.csv"
    keys = "type=classification,text=text,id=number"
    return tuple(task(f"{name}={files},{keys},label={name}") for name in LABELS)


@pytest.fixture
def make(table, tmp_path, base_config):
    """Return a function that makes a trainer of the table's tasks, by default with shared rows."""

    def make(shared=True, **changes):
        config = replace(base_config, tasks=table, limit=None, **ONCE | changes)

        def tasks(config):
            key = "table" if shared else None
            return {n: replace(one, shares_rows=key) for n, one in build_tasks(config).items()}

        chosen, model, splits = assemble(config, tasks)
        folder = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        folder.mkdir()
        return Trainer(model, chosen, splits, config, folder)

    return make


def test_a_task_with_two_views_of_its_texts_shares_no_row(make):
    """Its examples have two texts in place of one."""
    trainer = make(objective="cl")
    shared = {name: several["train"].shared for name, several in trainer.splits.items()}
    assert set(shared.values()) == {None}


def gradients(trainer):
    return torch.cat(
        [
            (torch.zeros_like(one) if one.grad is None else one.grad.to_dense()).flatten()
            for one in trainer.model.parameters()
        ]
    ).double()


def separate_gradient(trainer, batches):
    """The sum of the tasks' gradients, and their losses, each from a plain pass."""
    model, losses = trainer.model, {}
    model.zero_grad(set_to_none=True)
    for name, several in batches.items():
        split = trainer.splits[name]["train"]
        examples = np.concatenate([split.examples_in(rows) for rows in several])
        examples = examples[examples >= 0]
        texts = model.embed(split.separate.batch(examples), name)
        targets = split.targets(examples, texts[0].device)
        found = trainer.tasks[name].compute_losses(model.heads[name](*texts), texts, targets)
        found[name].backward()
        losses[name] = float(found[name].detach())
    found = gradients(trainer)
    model.zero_grad(set_to_none=True)
    return found, losses


@pytest.fixture
def encoded(monkeypatch):
    """The number of texts in each pass through the encoder."""
    from minbert.bi_encoder import BiEncoder

    found, pooled = [], BiEncoder.pooled

    def counted(self, encoder, batch, *rest):
        found.append(len(batch.lengths))
        return pooled(self, encoder, batch, *rest)

    monkeypatch.setattr(BiEncoder, "pooled", counted)
    return found


@pytest.mark.numeric
@pytest.mark.parametrize("changes", [{}, {"micro_batch": 3}, {"combiner": "uncertainty"}])
@pytest.mark.parametrize("measure", [False, True])
def test_a_step_has_the_gradient_of_separate_passes(make, changes, measure):
    trainer = make(batch_size=8, **changes)
    trainer.model.eval()
    batches = next_batches(trainer.streams, np.arange(3))
    assert len({rows.tobytes() for (rows,) in batches.values()}) == 1
    expected, losses = separate_gradient(trainer, batches)
    result = trainer.gradient(batches, measure)
    assert result.objectives == tuple(LABELS)
    assert_near(result.losses, np.array([losses[name] for name in LABELS]), step_terms(trainer))
    if not changes.get("combiner"):
        assert_near_in_norm(gradients(trainer), expected, step_terms(trainer))


def test_each_row_is_encoded_once_in_training_and_evaluation(make, encoded):
    trainer = make(batch_size=8)
    trainer.train_epoch(1)
    assert sum(encoded) == 37
    encoded.clear()
    trainer.evaluate()
    assert sum(encoded) == 11
    encoded.clear()
    alone = make(shared=False, batch_size=8)
    alone.evaluate()
    assert sum(encoded) == sum(len(one["dev"].examples) for one in alone.splits.values()) > 2 * 11


def test_tasks_of_one_table_share_their_tokens(make):
    splits = make().splits
    tokens = {id(splits[name]["train"].shared.tokens[0]) for name in LABELS}
    assert len(tokens) == 1
    for name, several in splits.items():
        split = several["train"]
        rows = np.flatnonzero(split.shared.examples >= 0)
        examples = split.examples_in(rows)
        np.testing.assert_array_equal(np.sort(examples), np.arange(len(split.examples)))
        one, other = split.batch(rows), split.separate.batch(examples)
        assert torch.equal(one.ids, other.ids), name


@pytest.mark.numeric
def test_scores_of_shared_rows_are_those_of_separate_passes(make):
    trainer = make()
    dev = {name: several["dev"] for name, several in trainer.splits.items()}
    found = score_splits(trainer.model, trainer.tasks, dev)
    for name, one in found.items():
        expected = score_split(trainer.model, trainer.tasks[name], dev[name])
        assert_near(one, expected, step_terms(trainer))


@pytest.mark.parametrize("measure", [False, True])
def test_a_task_without_a_label_in_a_step_has_no_objective(make, measure):
    trainer = make()
    blank = np.flatnonzero(trainer.splits["topic"]["train"].shared.examples < 0)[:4]
    result = trainer.gradient({name: [blank] for name in LABELS}, measure)
    assert result.objectives == ("urgent", "mood")
    assert (result.losses > 0).all()
    assert gradients(trainer).isfinite().all()
    # Without a gradient, the optimiser leaves the head alone.
    assert {one.grad for one in trainer.model.task_parameters("topic")} == {None}


def test_tasks_drawn_at_different_times_have_passes_of_their_own(make, encoded):
    trainer = make(batch_size=8)
    batches = next_batches(trainer.streams, np.array([0, 0, 1]))
    trainer.gradient(batches)
    assert len(encoded) == 3
    assert trainer.splits["topic"]["train"].shared is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"branch": "top-1"},
        {"sampling": "annealed"},
        {"sampling": "hybrid", "first_task": "topic"},
        {"schedule": "individual", "batches_per_step": 1},
        {"batches_per_step": 2},
        {"class_balanced": True, "batch_size": 8},
        {"regularizers": (Smart(weight={"topic": 1.0}),)},
        {"objective": "scl"},
    ],
)
def test_what_one_pass_cannot_serve_has_separate_passes(make, changes):
    trainer = make(**changes)
    assert all(several["train"].shared is None for several in trainer.splits.values())
    trainer.gradient(next_batches(trainer.streams, np.arange(3)))
