"""Methods without a file, as in a notebook: their code is compared, and they hold no state."""

import pytest

from common.errors import RunError, SettingsError
from multitask.combiners.pcgrad import PCGrad
from multitask.regularizers import Regularizer
from multitask.user_methods import check_use, sources

CLASS = """
class Tilted(Regularizer, name="tilted"):
    factor: float = {factor}

    def term(self, clean):
        names = {names}
        return {weight} * clean.loss if clean.task.name in names else clean.loss

    def scaled(self, clean):
        return [helper(one) for one in clean]

def helper(one):
    global calls
    calls += 1
    return one * SCALE + inner(one) + one.unused

calls = {calls}
unused = {unused}

def inner(one):
    return {inner} + (helper(one - 1) if one > 0 else 0)

SCALE = {scale}
"""


PLAIN = {
    "factor": 1.0,
    "weight": 2.0,
    "names": "{'sst', 'sts', 'qqp'}",
    "inner": 1,
    "scale": 2,
    "unused": 3,
    "calls": 0,
}


def defined(**change):
    """Define a class as a session without a file does."""
    place = {"Regularizer": Regularizer, "__name__": "session"}
    exec(compile(CLASS.format(**PLAIN | change), "<stdin>", "exec"), place)
    return place["Tilted"]


def test_the_same_code_has_the_same_checksum():
    first, again = sources([defined()]), sources([defined()])
    assert first == again
    assert len(first["Tilted"]) == 64
    check_use(first, [defined(unused=4, calls=7)])  # an attribute, and a name that is also set


@pytest.mark.parametrize(
    "change",
    [{"weight": 50.0}, {"factor": 3.0}, {"names": "{'sst'}"}, {"scale": 5}, {"inner": 4}],
    ids=str,
)
def test_edited_code_is_refused(change):
    with pytest.raises(RunError, match="expected the method Tilted of a Python session"):
        check_use(sources([defined()]), [defined(**change)])
    with pytest.raises(RunError, match="found none"):
        check_use(sources([defined()]), [])


def with_weight(weight):
    """Make a class with a variable of this function, as a notebook or a module of a user does."""

    class Scaled(Regularizer, name="scaled"):
        def term(self, clean):
            return weight * clean.loss

    return Scaled


def test_methods_with_other_variables_of_their_function_are_refused():
    stored = sources([with_weight(1.0)])
    check_use(stored, [with_weight(1.0)])
    with pytest.raises(RunError, match=r"expected the method .*Scaled of a Python session"):
        check_use(stored, [with_weight(-5.0)])


def test_attributes_of_a_method_are_not_changed():
    combiner = PCGrad()
    with pytest.raises(SettingsError, match="belongs in the object that its `build` returns"):
        combiner.counter = 1
