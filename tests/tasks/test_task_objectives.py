"""Objectives of tasks: contrastive terms, golden; embeddings of labels, by plain loops."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases
from tolerances import assert_near

from losses import (
    contrastive_objectives,
    instance_centered_loss,
    label_centered_loss,
    label_embedding_regularizer,
    lower_bounds,
    simcse_loss,
    supcon_loss,
)
from losses.lacon import lowest_label_centered
from minbert.batching import Batch
from tasks import CS224N, build_task, data_folder
from tasks.base import example_embedding
from tasks.heads import ATTENTION_WIDTH, LabelAttention
from tasks.lacon import LEAM, LSAN, LaCon, LaConFusion
from tasks.objectives import CL, LS, SCL, ContrastiveEPO, with_objective

pytestmark = pytest.mark.numeric

SST, QQP = build_task("sst"), build_task("qqp")
LENGTHS = [3, 1, 5, 2]
WIDTH = 12


def head_of(task, width=WIDTH):
    torch.manual_seed(0)
    return task.build_head(width).eval()


@pytest.fixture
def tokens():
    """States of four packed sequences, and the batch they are of."""
    torch.manual_seed(1)
    hidden = torch.randn(sum(LENGTHS), WIDTH, requires_grad=True)
    return hidden, Batch(torch.tensor(LENGTHS), torch.zeros(sum(LENGTHS), dtype=torch.long))


@pytest.fixture
def text():
    torch.manual_seed(2)
    return torch.randn(7, WIDTH)


LABELS = torch.tensor([0, 1, 2, 4, 1, 0, 2])


# Of each label n positives and 7 - n negatives, at cosines of 1 and -1, temperature 0.2.
LOWEST = sum(n * (math.log(7 - n) - 2 / 0.2) for n in (2, 2, 2, 1)) / 4


def test_the_label_centred_loss_is_counted_from_what_it_can_reach():
    assert lowest_label_centered(LABELS, 0.2) == pytest.approx(LOWEST)
    anchors = F.normalize(torch.randn(4, 3, dtype=torch.float64), dim=-1)
    ends = torch.stack([anchors[0], -anchors[0]])
    classes = torch.tensor([0, 0, 1, 1, 1])
    found = label_centered_loss(ends[classes], ends, classes, 0.2)
    assert found.item() == pytest.approx(lowest_label_centered(classes, 0.2))
    assert lowest_label_centered(torch.zeros(3), 0.2) == 0


@pytest.mark.parametrize("heads", [6, 1, 4])
def test_lacon_is_its_three_losses(text, heads):
    task = with_objective(SST, LaCon(0.2, label_heads=heads, label_spread=0.7))
    head = head_of(task)
    outputs = head(text)
    instances = head.projection(text)
    expected = {
        "icl": instance_centered_loss(instances, head.labels, LABELS, 0.2, heads),
        "lcl": label_centered_loss(instances, head.labels, LABELS, 0.2) - LOWEST,
        "ler": 0.7 * label_embedding_regularizer(head.labels),
    }
    found = task.compute_losses(outputs, (text,), LABELS)["sst"]
    torch.testing.assert_close(found, sum(expected.values()))
    for terms in (("icl",), ("lcl",), ("icl", "ler"), ("lcl", "ler"), ("icl", "lcl")):
        some = with_objective(
            SST, LaCon(0.2, label_heads=heads, label_spread=0.7, label_terms=terms)
        )
        value = sum(expected[term] for term in terms)
        torch.testing.assert_close(some.compute_losses(outputs, (text,), LABELS)["sst"], value)


@pytest.mark.parametrize("objective", [LaCon, LaConFusion])
def test_the_prediction_is_the_label_of_the_largest_cosine(text, objective):
    task = with_objective(SST, objective())
    head = head_of(task)
    scores = task.scores(head, (text,)).detach()
    labels, instances = head.labels.detach(), head.projection(text).detach()
    cosines = [[float(F.cosine_similarity(x, y, 0)) for y in labels] for x in instances]
    assert task.kind.predictions(scores.numpy()).tolist() == np.argmax(cosines, 1).tolist()
    logits = torch.tensor(cosines) / 0.1  # those of the instance-centred loss with one head
    # A dot product and two norms, over the temperature; five classes.
    assert_near(scores, logits.softmax(-1), 3 * WIDTH + 5, scale=1 / 0.1)
    torch.testing.assert_close(scores.sum(1), torch.ones(7))


def attended(hidden, labels, convolution, rectified):
    """One sequence at a time, without padding or packing."""
    weight, bias = convolution.weight.flatten(), convolution.bias
    reach, found, begin = len(weight) // 2, [], 0
    for length in LENGTHS:
        states = hidden[begin : begin + length]
        begin += length
        scores = []
        for place in range(length):
            best = torch.tensor(-torch.inf)
            for label in labels:
                total = bias[0]
                for offset in range(-reach, reach + 1):
                    if 0 <= place + offset < length:
                        cosine = F.cosine_similarity(states[place + offset], label, 0)
                        total = total + weight[offset + reach] * cosine
                best = torch.maximum(best, torch.relu(total) if rectified else total)
            scores.append(best)
        found.append(torch.stack(scores).softmax(0) @ states)
    return torch.stack(found)


@pytest.mark.parametrize("rectified", [False, True])
def test_label_attention_by_plain_loops(tokens, rectified):
    hidden, batch = tokens
    torch.manual_seed(3)
    attention, labels = LabelAttention(rectified), torch.randn(4, WIDTH)
    torch.nn.init.normal_(attention.convolution.weight)
    found = attention(hidden, batch, labels)
    expected = attended(hidden, labels, attention.convolution, rectified)
    # A cosine, the convolution, the softmax, the mean; the convolution's weights magnify.
    terms, weights = 3 * WIDTH + 5 + 2 * max(LENGTHS), attention.convolution.weight
    scale = (weights.abs().sum() * hidden.abs().max()).item()
    assert_near(found, expected, terms, scale)
    mine, theirs = (torch.autograd.grad(x.sum(), hidden)[0] for x in (found, expected))
    assert_near(mine, theirs, 3 * terms, scale)


@pytest.mark.parametrize("objective", [LaConFusion, LEAM])
@pytest.mark.parametrize("seed", range(10))
def test_the_attention_learns_from_the_start(tokens, objective, seed):
    hidden, batch = tokens
    head = head_of(with_objective(SST, objective()))
    torch.manual_seed(seed)
    with torch.no_grad():
        head.labels.normal_()
    head.pool(hidden, batch)[0].sum().backward()
    assert head.attention.convolution.weight.grad.abs().max() > 0


def test_lsan_by_plain_loops(tokens):
    hidden, batch = tokens
    head = head_of(with_objective(SST, LSAN()))
    pooled = head.pool(hidden, batch)
    assert pooled.shape == (4, head.pooled_width)
    expected, begin = [], 0
    for length in LENGTHS:
        states = hidden[begin : begin + length]
        begin += length
        own = head.queries(torch.tanh(head.tokens(states))).softmax(0)
        rows = []
        for place, label in enumerate(head.labels):
            first = own[:, place] @ states
            second = (states @ label) @ states / length
            gates = [g(m).sigmoid() for g, m in zip(head.gates, (first, second), strict=True)]
            share = gates[0] / (gates[0] + gates[1])
            rows.append(share * first + (1 - share) * second)
        expected.append(torch.stack(rows))
    expected = torch.stack(expected)
    # Both layers of the self-attention, the softmax, the mean, the gate; then both of the head.
    terms = WIDTH + ATTENTION_WIDTH + 2 * max(LENGTHS) + WIDTH
    assert_near(pooled, expected.flatten(1), terms)
    logits = head.output(torch.relu(head.hidden(expected)))[:, :, 0]
    assert_near(head(pooled), logits, terms + 2 * WIDTH, scale=expected.abs().max().item())


def test_leam_classifies_the_labels_too(tokens):
    hidden, batch = tokens
    task = with_objective(SST, LEAM())
    head, targets = head_of(task), torch.tensor([0, 1, 2, 4])
    pooled = head.pool(hidden, batch)
    outputs = head(pooled)
    own = F.cross_entropy(head.classifier(head.labels), torch.arange(5))
    expected = F.cross_entropy(head.classifier(pooled), targets) + own
    torch.testing.assert_close(task.compute_losses(outputs, (pooled,), targets)["sst"], expected)
    torch.testing.assert_close(task.scores(head, (pooled,)), outputs[0].softmax(-1))


@pytest.mark.parametrize("plain", [SST, QQP], ids=["one text", "a pair"])
def test_a_second_view_of_training_texts_is_contrasted(plain, text):
    task = with_objective(plain, CL(temperature=0.2, weight=0.4))
    head = head_of(task)
    texts = tuple(text.roll(i, 0) + i for i in range(2 * plain.texts))
    labels = LABELS.clamp(max=1)
    outputs = head(*texts)
    torch.testing.assert_close(outputs, head(*texts[: plain.texts]))
    views = example_embedding(texts[: plain.texts]), example_embedding(texts[plain.texts :])
    expected = 0.6 * F.cross_entropy(outputs, labels) + 0.4 * simcse_loss(*views, 0.2)
    torch.testing.assert_close(task.compute_losses(outputs, texts, labels)[plain.name], expected)
    joint = build_task("mrpc", pair="joint")
    for one in (joint, plain):
        contrasted = with_objective(one, CL())
        for split, times in (("train", 2), ("dev", 1)):
            assert len(contrasted.read(data_folder("sample"), split).texts) == times * one.texts


def golden_loss(objective, inputs, embeddings, **settings):
    weight = min(inputs["lambda"], 1 - 1e-9)  # all of it would leave the head untrained
    made = objective(temperature=inputs["tau"], weight=weight, **settings)
    task = with_objective(build_task("sst"), made)
    logits = torch.tensor(inputs["logits"], dtype=torch.float64)
    texts = (torch.tensor(embeddings, dtype=torch.float64),)
    return task.compute_losses(logits, texts, torch.tensor(inputs["labels"]))


@golden_cases("supcon")
def test_cross_entropy_and_supcon_golden(case):
    found = golden_loss(SCL, case["inputs"], case["inputs"]["embeddings"])
    assert found["sst"].item() == pytest.approx(case["expected"]["ce_scl"], rel=1e-6)


@golden_cases("scl_ls")
def test_linear_scalarisation_golden(case):
    inputs = case["inputs"]
    preference = inputs["preference"]
    found = golden_loss(LS, inputs, inputs["embeddings_unit"], preference=preference[0])
    above = np.dot(preference, lower_bounds(inputs["tau"], 5))  # of SST's five classes
    expected = case["expected"]["ls_loss"] - inputs["lambda"] * above
    assert found["sst"].item() == pytest.approx(expected, rel=1e-6)


@pytest.fixture
def batch():
    torch.manual_seed(0)
    return torch.randn(8, 5), torch.randn(8, 6), torch.randn(8, 6), torch.arange(8) % 2


def test_the_three_objectives_are_above_their_ideal_points(batch):
    logits, u, _, targets = batch
    task = with_objective(build_task("sst"), ContrastiveEPO())
    assert task.objectives == ("sst/cross_entropy", "sst/pull", "sst/push")
    found = task.compute_losses(logits, (u,), targets)
    pull, push = contrastive_objectives(F.normalize(u, dim=1), targets, 0.3)
    expected = (0.7 * F.cross_entropy(logits, targets), pull + 1 / 0.3, push + 1 / (4 * 0.3))
    torch.testing.assert_close(tuple(found.values()), expected)


@pytest.mark.parametrize("objective", [SCL, LS, ContrastiveEPO, CL, LaCon])
def test_losses_over_a_batch_keep_the_batch_whole(objective):
    for name in CS224N:
        plain = build_task(name)
        task = with_objective(plain, objective())
        if name == "sts":
            assert task is plain
        else:
            assert task.compares_examples
            assert len(task.objectives) == (3 if objective is ContrastiveEPO else 1)


def test_two_towers_are_one_embedding_with_their_difference(batch):
    logits, u, v, targets = batch
    task = with_objective(build_task("qqp"), SCL(0.3, 0.4))
    whole = torch.cat([u, v, (u - v).abs()], 1)
    torch.testing.assert_close(example_embedding((u, v)), whole)
    expected = 0.6 * F.cross_entropy(logits, targets) + 0.4 * supcon_loss(whole, targets, 0.3)
    torch.testing.assert_close(task.compute_losses(logits, (u, v), targets)["qqp"], expected)
