"""Types of own tasks: ordered classes."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from multitask import RunConfig, task
from tasks import find_task
from tasks.described import DescriptionError, parse_description
from tasks.own_types import TYPES
from tasks.task_inference import complete_description, description_lines

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
URGENCY = f"urgency={REQUESTS}:type=ordinal,text=message,label=urgency"


def described(text):
    name = text.partition("=")[0]
    return complete_description(name, parse_description(text))


def built(found):
    return find_task(found.name, {found.name: found.to_json()})


def test_ordered_words_need_their_order():
    with pytest.raises(
        DescriptionError, match=r"labels=low\|normal\|high.*found high, low, normal$"
    ):
        described(URGENCY)
    found = described(f"{URGENCY},labels=low|normal|high")
    assert [*description_lines(found)] == [
        "ordinal classification of 'message', 3 ordered classes in column 'urgency': "
        "low < normal < high"
    ]
    examples = built(found).read(REQUESTS.parent, "train")
    assert examples.texts[0][0] == "There is smoke in the corridor on our floor."
    assert examples.targets[0] == 2


def test_ordered_numbers_are_sorted_as_numbers(tmp_path):
    mine = task([f"text {n}" for n in range(30)], [10, 9, 1] * 10, folder=tmp_path, type="ordinal")
    assert mine.described.labels == ("1", "9", "10")


@pytest.mark.parametrize("rest", ["", ",text=topic", ",text=topic,pair=joint"])
def test_ordered_classes_are_trained_by_corn(rest):
    """The head has C - 1 logits of P(y > k | y >= k); the loss is a loop over them in float64."""
    own = built(described(f"{URGENCY},labels=low|normal|high{rest}"))
    torch.manual_seed(0)
    head = own.build_head(8).eval()
    logits = head(*torch.randn(own.vectors, 6, 8)).detach().double()
    assert logits.shape == (6, 2)
    targets = torch.tensor([0, 1, 2, 2, 1, 0])
    terms = [
        -F.logsigmoid(logits[i, k] if target > k else -logits[i, k])
        for i, target in enumerate(targets.tolist())
        for k in range(2)
        if target >= k
    ]
    assert own.kind.loss(logits, targets).item() == pytest.approx(sum(terms).item() / 6)
    above = logits.sigmoid().cumprod(1).numpy()
    expected = np.stack([1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]], 1)
    np.testing.assert_allclose(own.kind.scores(logits).numpy(), expected, rtol=1e-9)
    found = own.kind.measure(expected, targets.numpy())
    assert list(found) == ["quadratic_kappa", "accuracy"]
    assert own.kind.main_metric in found


def test_every_type_is_named_where_tasks_are_described():
    page = (REQUESTS.parents[3] / "docs" / "own-data.md").read_text()
    assert [name for name in TYPES if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"label_smoothing": 0.1}, "label_smoothing and loss of urgency"),
        ({"objective": "scl"}, "objective scl and loss of urgency"),
    ],
)
def test_other_losses_of_ordered_classes_are_refused(settings, line):
    own = task(f"{URGENCY},labels=low|normal|high")
    with pytest.raises(ValueError, match=line):
        RunConfig(tasks=(own,), **settings)
