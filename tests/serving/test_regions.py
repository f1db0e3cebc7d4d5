"""How sets of labels are written."""

import numpy as np
import pytest

from common.errors import RunError
from serving.prediction import Prediction
from serving.regions import region_fields, separator_of


@pytest.mark.parametrize(
    ("names", "text"),
    [(("low", "high"), "low|high"), (("a|b", "a"), "a|b;a"), (("|;", "/"), "|; // /")],
)
def test_labels_of_a_set_can_be_told_apart(names, text):
    nothing = np.zeros(1, bool)
    sets = np.ones((1, 2), bool)
    found = Prediction("own", np.zeros(1), ["x"], nothing, nothing, names, sets=sets)
    assert region_fields(found, 0) == [text]


def test_labels_with_every_separator_are_refused():
    with pytest.raises(RunError, match="expected labels without one of"):
        separator_of(("|", ";", "/", "a // b", "a ||| b"))
