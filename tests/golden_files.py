"""Golden vectors of the formulas, in tests/golden."""

import json
from pathlib import Path

import pytest


def golden(topic):
    """Return the content of a file of golden vectors."""
    return json.loads((Path(__file__).with_name("golden") / f"{topic}.json").read_text())


def golden_cases(topic, wanted=lambda inputs: True):
    """A mark that gives a test each `case` of a file of golden vectors whose inputs are wanted."""
    cases = [case for case in golden(topic)["cases"] if wanted(case["inputs"])]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["id"])
