"""Losses of imbalanced classes in a run: counts of the training split, and what excludes them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from common.errors import SettingsError, UserError
from losses import corn_log_probabilities
from multitask import RunConfig, task
from multitask.assembly import assemble
from multitask.config_tasks import build_tasks
from multitask.settings.imbalance_rules import imbalance_of
from tasks import build_task
from tasks.described import DescriptionError, parse_description
from tasks.imbalance import Imbalance, with_imbalance
from tasks.task_description import from_json
from tasks.task_inference import complete_description

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
TOPIC = f"topic={REQUESTS}:type=classification,text=message,label=topic"
URGENCY = f"urgency={REQUESTS}:type=ordinal,text=message,label=urgency,labels=low|normal|high"
TAGS = f"tags={REQUESTS}:type=multi-label,text=message,label=tags"
WEIGHTS = ",class_weights=high=5|low=2"
ALL = (TOPIC, URGENCY, TAGS)


def config_of(*descriptions, **settings):
    return RunConfig(tasks=tuple(map(task, descriptions)), encoder="tiny", **settings)


def log_probabilities(name, logits):
    """The logarithms of the class probabilities, float64."""
    return corn_log_probabilities(logits) if name == "urgency" else logits.log_softmax(-1)


def expected_loss(name, logits, targets, train, settings):
    """The loss as double loops over examples and classes or labels, from the training targets."""
    n, total = len(train), 0.0
    rule, gamma = settings.get("class_weights"), settings.get("focal_gamma", 0)
    tau, beta = settings.get("logit_adjustment", 0), 0.999

    def weights(counts):
        if rule is None:
            return [1.0] * len(counts)
        if rule == "balanced":
            return [sum(counts) / (len(counts) * m) for m in counts]
        raw = [(1 - beta) / (1 - beta**m) for m in counts]
        return [one / np.mean(raw) for one in raw]

    def term(row, y, counts, weight):
        row = row + tau * np.log(np.array(counts) / n)
        p = np.exp(row[y]) / np.exp(row).sum()
        return -weight * (1 - p) ** gamma * np.log(p)

    if name == "tags":
        for row, target in zip(logits.numpy(), targets.numpy(), strict=True):
            for k, (z, present) in enumerate(zip(row, target, strict=True)):
                having = int(train[:, k].sum())
                counts = [n - having, having]
                absent, there = weights(counts)
                weight = there / absent if present else 1.0
                total += term(np.array([0.0, z]), int(present), counts, weight) / target.size
    else:
        counts = np.bincount(train).tolist()
        for row, y in zip(log_probabilities(name, logits).numpy(), targets.tolist(), strict=True):
            total += term(row, y, counts, weights(counts)[y])
    return total / len(targets)


@pytest.mark.numeric
@pytest.mark.parametrize(
    "settings",
    [
        {"class_weights": "balanced"},
        {"class_weights": "effective", "focal_gamma": 2.0},
        {"focal_gamma": 0.5},
        {"logit_adjustment": 1.5},
    ],
    ids=str,
)
def test_losses_count_the_training_examples_that_a_limit_leaves(settings):
    config = config_of(*ALL, limit=30, **settings)
    tasks, _, splits = assemble(config)
    plain = build_tasks(config)
    for name, found in tasks.items():
        train = splits[name]["train"].examples.targets
        assert len(train) == 30
        head = plain[name].build_head(8).eval()
        logits = head(torch.randn(7, 8)).detach().double()
        targets = torch.from_numpy(train[:7])
        targets = targets.double() if name == "tags" else targets
        assert found.objectives == plain[name].objectives == (name,)
        loss = found.compute_losses(logits, (), targets)[name]
        expected = expected_loss(name, logits, targets, train, settings)
        assert loss.item() == pytest.approx(expected, rel=1e-9), name
        # A teacher, predictions and metrics use the kind, whose loss is the plain one.
        assert found.kind.loss(logits, targets) == plain[name].kind.loss(logits, targets)


def test_weights_of_the_description_replace_those_of_the_run(capsys):
    tasks, _, splits = assemble(
        config_of(URGENCY + WEIGHTS, TAGS, class_weights={"tags": "balanced"})
    )
    printed = capsys.readouterr().out
    assert "urgency: weights of classes: low 2, normal 1, high 5\n" in printed
    train = splits["tags"]["train"].examples.targets
    first = (len(train) - train[:, 0].sum()) / train[:, 0].sum()
    assert f"tags: weights of labels, relative to their absence: access {first:.3g}, " in printed
    logits = torch.randn(3, 2, dtype=torch.float64)
    terms = -log_probabilities("urgency", logits)[range(3), range(3)]
    found = tasks["urgency"].compute_losses(logits, (), torch.arange(3))["urgency"]
    torch.testing.assert_close(found, (terms * torch.tensor([2.0, 1, 5])).mean())
    assemble(config_of(URGENCY + WEIGHTS, TAGS, class_weights="effective"))
    assert "urgency: weights of classes: low 2, normal 1, high 5\n" in capsys.readouterr().out


def test_a_class_without_examples_gives_finite_losses():
    own = build_task("sst")
    targets = np.array([0, 0, 1, 2])  # of five classes
    for one in (("balanced", 0.9), ("effective", 0.9), (None, 0.9, 0.0, 1.0)):
        found = with_imbalance(own, Imbalance(*one), targets)
        loss = found.compute_losses(torch.randn(4, 5), (), torch.from_numpy(targets))["sst"]
        assert loss.isfinite()


def test_a_task_of_another_loss_is_refused_where_the_rules_do_not_know_it():
    own = build_task("qqp", loss="with-contrastive")
    with pytest.raises(ValueError, match="expected a task that is trained by cross-entropy"):
        with_imbalance(own, Imbalance("balanced", 0.9), np.array([0, 1]))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"class_weights": "even"}, "class_weights: expected one of balanced, effective, or one"),
        ({"focal_gamma": -1}, "focal_gamma: expected a number from 0"),
        ({"effective_beta": 1.0}, "effective_beta: expected a number from 0 and below 1"),
        ({"effective_beta": 0.9}, "effective_beta: expected class_weights effective, found 0.9"),
        (
            {"effective_beta": 0.9, "class_weights": "balanced"},
            "effective_beta: expected class_weights effective, found 0.9",
        ),
        ({"focal_gamma": {"cola": 2}}, "focal_gamma: expected one of sst, sts, etpc, found 'cola'"),
        (
            {"class_weights": {"sts": "balanced"}},
            "class_weights: expected tasks with classes or several labels, found sts",
        ),
        (
            {"focal_gamma": 2, "tasks": ("sts",)},
            "focal_gamma: expected a task with classes or several labels, found sts",
        ),
        (
            {"class_weights": {"sst": "balanced"}, "logit_adjustment": {"sst": 1}},
            "class_weights and logit_adjustment of sst: expected at most one",
        ),
        (
            {"focal_gamma": 2, "logit_adjustment": 1},
            "focal_gamma and logit_adjustment of sst: expected at most one",
        ),
        (
            {"focal_gamma": 2, "label_smoothing": {"sst": 0.1}},
            "focal_gamma and label_smoothing of sst: expected at most one",
        ),
        (
            {"logit_adjustment": 1, "task_options": {"sst": {"loss": "corn"}}},
            "logit_adjustment and loss of sst: expected at most one",
        ),
        (
            {"class_weights": "balanced", "objective": "scl"},
            "class_weights and objective scl: expected at most one",
        ),
        (
            {"class_weights": "balanced", "class_balanced": True},
            "class_weights and class_balanced: expected at most one of them, for both correct",
        ),
        (
            {"tasks": ("sst",), "mode": "pretrain", "objective": "supcon", "focal_gamma": 1},
            "focal_gamma: expected mode single, multitask or pareto, found pretrain",
        ),
        (
            {"tasks": ("sst",), "mode": "pretrain", "objective": "supcon"}
            | {"class_weights": "balanced"},
            "class_weights: expected mode single, multitask or pareto, found pretrain",
        ),
    ],
)
def test_contradictions_are_refused_in_one_line(settings, line):
    with pytest.raises(SettingsError) as found:
        RunConfig(**{"tasks": ("sst", "sts", "etpc")} | settings)
    assert line in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {
                "tasks": ("sst", "etpc"),
                "task_options": {"sst": {"loss": "corn"}},
                "class_weights": {"etpc": "balanced"},
            },
            (None, Imbalance("balanced", 0.999)),
        ),
        (
            {
                "tasks": ("sst", "sts"),
                "class_weights": "effective",
                "focal_gamma": 2,
                "effective_beta": 0.99,
            },
            (Imbalance("effective", 0.99, 2), None),
        ),
        (
            {"tasks": ("sst",), "class_balanced": True, "focal_gamma": 2},
            (Imbalance(None, 0.999, 2),),
        ),
        (
            {"tasks": ("sst", "etpc"), "objective": "scl", "focal_gamma": {"etpc": 2}},
            (None, Imbalance(None, 0.999, 2)),
        ),
    ],
)
def test_what_fits_together_is_accepted(settings, expected):
    config = RunConfig(**settings)
    found = tuple(imbalance_of(config, name) for name in config.tasks)
    assert [one and (one.weights or None, *one[1:]) for one in found] == [
        one and tuple(one) for one in expected
    ]


@pytest.mark.parametrize(
    ("description", "settings", "line"),
    [
        (
            URGENCY + WEIGHTS,
            {"class_weights": {"urgency": "balanced"}},
            "class_weights: expected none for urgency, whose description has weights",
        ),
        (
            URGENCY + WEIGHTS,
            {"logit_adjustment": 1},
            "class_weights and logit_adjustment of urgency: expected at most one",
        ),
        (
            TOPIC + ",class_weights=payment=2",
            {"label_smoothing": 0.1},
            "class_weights and label_smoothing of topic: expected at most one",
        ),
        (
            TOPIC + ",class_weights=payment=2",
            {"objective": "scl"},
            "class_weights and objective scl: expected at most one",
        ),
    ],
)
def test_weights_of_a_description_exclude_the_same(description, settings, line):
    with pytest.raises(SettingsError, match=line):
        config_of(description, **settings)


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        ("balanced", "as in fire=5|flood=2, found 'balanced'; --class-weights balanced weights"),
        ("high=5|high=2", "expected each class once, as in fire=5|flood=2, found 'high=2'"),
        ("high=5| high=2", "expected each class once, as in fire=5|flood=2, found ' high=2'"),
        ("high=much", "found 'high=much'"),
        ("high=0", "class_weights: high: expected a number above 0"),
        ("hihg=2", "expected some of low, normal, high, found 'hihg'; did you mean high?"),
    ],
)
def test_weights_that_fit_no_class_are_refused(weights, line):
    with pytest.raises(DescriptionError) as found:
        complete_description("urgency", parse_description(f"{URGENCY},class_weights={weights}"))
    assert line in str(found.value)


def test_weights_of_a_description_are_stored_only_if_given(tmp_path):
    plain, weighted = (
        complete_description("urgency", parse_description(one))
        for one in (URGENCY, URGENCY + WEIGHTS)
    )
    assert "class_weights" not in plain.to_json()
    assert weighted.to_json() == plain.to_json() | {"class_weights": {"high": 5.0, "low": 2.0}}
    assert from_json("urgency", weighted.to_json()) == weighted
    with pytest.raises(UserError, match="class_weights: expected some of low, normal, high"):
        from_json("urgency", plain.to_json() | {"class_weights": {"fire": 2.0}})
    file = tmp_path / "urgency.yaml"
    keys = "type: ordinal\ntext: message\nlabel: urgency\nlabels: [low, normal, high]\n"
    file.write_text(f"train: {REQUESTS}\n{keys}class_weights: {{high: 5, low: 2}}\n")
    assert task(f"urgency={file}") == weighted
    lists = {"type": "ordinal", "classes": ["0", "1"], "class_weights": {"1": 3}}
    mine = task(["a", "b"] * 9, [0, 1] * 9, folder=tmp_path, **lists)
    assert mine.class_weights == {"1": 3.0}
    similar = "type=similarity,text=asked,text=answered,label=y,class_weights=a=1"
    with pytest.raises(DescriptionError, match="class_weights: expected another type, found simil"):
        parse_description(f"s={REQUESTS}:{similar}")
