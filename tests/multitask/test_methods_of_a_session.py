"""Methods without a file, as in a notebook: their code is compared, and they hold no state."""

from types import SimpleNamespace

import pytest

from common.errors import RunError, SettingsError
from multitask.combiners.pcgrad import PCGrad
from multitask.regularizers import Regularizer
from multitask.settings.user_methods import check_use, sources

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


def scaled(weight, name="scaled"):
    """Make a class with variables of this function, as a notebook or a module of a user does."""
    calls = 0
    if name == "never":
        unset = 0

    def helper(number):
        return helper(number - 1) if number > 0 else weight

    class Scaled(Regularizer, name=name):
        def term(self, clean):
            nonlocal calls
            calls += 1
            return helper(calls) * clean.loss if calls else unset

    return Scaled


def test_methods_with_other_variables_of_their_function_are_refused():
    first = scaled(1.0)
    stored = sources([first])
    (name,) = stored
    assert name == "test_methods_of_a_session.py:regularizers:scaled"
    first().term(SimpleNamespace(loss=1.0))  # counts its calls
    check_use(stored, [first])
    check_use(stored, [scaled(1.0)])
    with pytest.raises(RunError, match=r"expected --use test_methods_of_a_session\.py with check"):
        check_use(stored, [scaled(-5.0)])


def test_a_function_may_make_several_methods_of_a_file():
    found = sources([scaled(1.0, "once"), scaled(2.0, "twice")])
    assert len(set(found.values())) == 2


def test_attributes_of_a_method_are_not_changed():
    combiner = PCGrad()
    with pytest.raises(SettingsError, match="belongs in the object that its `build` returns"):
        combiner.counter = 1
