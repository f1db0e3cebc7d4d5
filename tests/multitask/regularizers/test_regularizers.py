"""SMART in a step: against explicit passes, and what it owes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from common.errors import SettingsError
from losses import adversarial_noise, symmetric_kl
from multitask.passes import CleanPass, EncoderPass, Part, seed_step
from multitask.regularizers import Smart

ROWS = np.arange(6)


def gradient_of(model):
    found = [
        torch.zeros_like(p) if p.grad is None else p.grad.to_dense() for p in model.parameters()
    ]
    return torch.cat([g.flatten() for g in found])


def stepped(trainer, name="sst", rows=ROWS):
    """Loss and gradient of one step on some rows."""
    trainer.model.zero_grad(set_to_none=True)
    result = trainer.gradient({name: [rows]})
    return result.losses[0], gradient_of(trainer.model)


def close(found, expected, tolerance=1e-5):
    assert (found - expected).norm() <= tolerance * expected.norm()


def outputs(trainer, batch, task="sst"):
    texts = trainer.model.embed(batch)
    return trainer.model.heads[task](*texts)


def clean(trainer, name):
    """What a regulariser sees of ROWS."""
    split = trainer.splits[name]["train"]
    targets, task = split.targets(ROWS, torch.device("cpu")), trainer.tasks[name]
    one = EncoderPass(trainer.model, [split.batch(ROWS)], len(split.tokens), name)
    found = trainer.model.heads[name](*one.texts)
    loss = task.compute_losses(found, one.texts, targets)[name]
    part, seed = Part((ROWS,), ROWS, 1.0), trainer.config.seed
    return CleanPass([one], task, part, seed, 0, 0.0, targets, found, loss)


@pytest.mark.parametrize("task", ["sst", "qqp", "sts"])
@pytest.mark.parametrize("variant", ["normalised", "projected"])
@pytest.mark.parametrize("training", [False, True])
def test_smart_adds_the_divergence_under_adversarial_noise(
    make_trainer, monkeypatch, task, variant, training
):
    """Both towers have noise, dropout is held fixed, and both sides are differentiated."""
    smart = Smart({task: 2.0}, variant=variant)
    trainer = make_trainer(only=task, regularizers=smart)
    model = trainer.model.train(training)
    seen = {}
    make_noise = Smart.noise
    monkeypatch.setattr(Smart, "noise", lambda *own: seen.setdefault("noise", make_noise(*own)))
    loss, gradient = stepped(trainer, task)
    noise = seen["noise"]
    split = trainer.splits[task]["train"]
    batch, targets = split.batch(ROWS), split.targets(ROWS, torch.device("cpu"))
    assert noise.shape == (batch.tokens, model.bi_encoder.width)
    tokens_with_noise = noise.abs().amax(1) > 0
    assert tokens_with_noise.all(), "every token of every text"
    model.zero_grad(set_to_none=True)
    seed_step(trainer.config.seed, 0, 0)
    found = outputs(trainer, batch, task)
    seed_step(trainer.config.seed, 0, 0)
    noisy = outputs(trainer, replace(batch, noise=noise), task)
    chosen = trainer.tasks[task]
    plain = chosen.compute_losses(found, (), targets)[task]
    expected = plain + 2.0 * chosen.kind.divergence(noisy, found)
    assert expected > plain
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    expected.backward()
    close(gradient, gradient_of(model))


def test_the_noise_is_that_of_the_pure_function_and_leaves_no_gradient(make_trainer):
    smart = Smart(1.0, variant="projected", steps=2)
    trainer = make_trainer(only="sst", regularizers=smart, dropout=False)
    seen = clean(trainer, "sst")
    noise = smart.noise(seen)
    expected = adversarial_noise(
        lambda n: symmetric_kl(
            outputs(trainer, replace(seen.batch, noise=n)), seen.outputs.detach()
        ),
        0.1 * smart.radii(seen) * smart.normal(seen),
        seen.batch.example_index,
        variant="projected",
        steps=2,
        step_size=smart.radii(seen),
        radius=smart.radii(seen),
    )
    torch.testing.assert_close(noise, expected)
    assert all(p.grad is None for p in trainer.model.parameters())
    assert all(p.requires_grad for p in trainer.model.parameters())


@pytest.mark.parametrize("variant", ["normalised", "projected"])
def test_the_radius_is_a_share_of_the_norm_of_the_vectors_it_is_added_to(make_trainer, variant):
    """The embeddings ten times as large: noise ten times as large, whatever the encoder's scale."""
    smart = Smart(1.0, variant=variant, radius=0.25)
    trainer = make_trainer(only="sst", dropout=False, regularizers=smart)
    seen = clean(trainer, "sst")
    vectors = trainer.model.bi_encoder.encoder.embeddings.vectors(seen.batch)
    radius = smart.radii(seen)
    at_the_bound = radius * torch.ones_like(vectors)
    torch.testing.assert_close(at_the_bound.norm(dim=1), 0.25 * vectors.norm(dim=1))
    with torch.no_grad():
        embeddings = trainer.model.bi_encoder.encoder.embeddings
        for table in (embeddings.word, embeddings.norm):
            table.weight *= 10
        embeddings.norm.bias *= 10
    torch.testing.assert_close(smart.radii(seen), 10 * radius)


@pytest.mark.parametrize("variant", ["normalised", "projected"])
def test_smart_works_with_pcgrad_and_micro_batches(make_trainer, variant):
    """Noise and term are those of the whole batch, in whatever pieces it comes."""
    found = {}
    for size in (None, 2):
        smart = Smart({"sst": 1.0, "sts": 3.0}, variant=variant)
        trainer = make_trainer(f"{size}", regularizers=smart, dropout=False, micro_batch=size)
        result = trainer.gradient({"sst": [ROWS], "sts": [ROWS]})
        found[size] = gradient_of(trainer.model)
        assert result.grams
    # A gradient of next to no noise is in float32 mostly rounding: it moves `normalised` a little.
    close(found[2], found[None], 1e-3 if variant == "normalised" else 1e-5)


def test_a_weight_needs_a_task_whose_outputs_can_be_compared(make_trainer):
    trainer = make_trainer(only="sst")
    assert Smart({"sst": 2.0}).checked_weights(trainer.tasks) == {"sst": 2.0}
    tasks = {"sst": replace(trainer.tasks["sst"], compares_examples=True)}
    with pytest.raises(SettingsError, match="smart_weight: the outputs of sst cannot be compared"):
        Smart(1.0).checked_weights(tasks)


def test_tasks_without_a_weight_have_no_regulariser(make_trainer, monkeypatch):
    trainer, seen = make_trainer(regularizers=Smart({"sts": 1.0})), []
    term = Smart.term
    monkeypatch.setattr(Smart, "term", lambda own, c: (seen.append(c.task.name), term(own, c))[1])
    trainer.gradient({name: [ROWS] for name in trainer.tasks})
    assert seen == ["sts"]
