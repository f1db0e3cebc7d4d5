"""Methods of a notebook, which have no file, and of files that change: which code a run records."""

import sys
from importlib import import_module, invalidate_caches, reload
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from common.errors import RunError, SettingsError
from multitask import RunConfig
from multitask.combiners import Combiner
from multitask.combiners.pcgrad import PCGrad
from multitask.regularizers import Regularizer
from multitask.settings.user_methods import check_use, load_methods, sources
from multitask.storage.run_folder import RunFolder
from multitask.storage.start import holds_finished, make_ready

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


WITH_STATE = """
class Base(Combiner):
    def scale(self, *, factor={keyword}, of=lambda: {function}):
        return factor * {base}

class Mine(Base, name="mine"):
    def build(self, setup):
        class Inner(Other):
            rate = RATE
        return State(self), Inner()

class State:
    limit = {limit}

    def __init__(self, settings):
        self.start, self.others = {start}, (State, Mine)

    @property
    def twice(self):
        return {prop} * self.start

class Other:
    def state(self):
        global steps
        steps += 1
        return State(self)

    def seen(self):
        return steps

RATE, steps = {rate}, {steps}
"""
PARTS = {"keyword": 1, "function": 2, "base": 3, "limit": 4, "start": 5, "prop": 6, "rate": 7}


def with_state(**change):
    """Define a method with a base and classes of state, as a session without a file does."""
    place = {"Combiner": Combiner, "__name__": "session"}
    exec(compile(WITH_STATE.format(**PARTS | {"steps": 0} | change), "<stdin>", "exec"), place)
    return place["Mine"]


@pytest.mark.parametrize("part", PARTS)
def test_bases_states_and_keywords_of_a_session_are_compared(part, monkeypatch):
    session = ModuleType("session")
    session.__file__ = "<stdin>"  # as in `python -`
    monkeypatch.setitem(sys.modules, "session", session)
    stored = sources([with_state()])
    check_use(stored, [with_state()])
    check_use(stored, [with_state(steps=9)])  # a count that the classes keep
    with pytest.raises(RunError, match="expected the method Mine of a Python session"):
        check_use(stored, [with_state(**{part: 50})])


def test_a_state_class_that_a_function_of_a_file_makes_is_compared():
    def made(weight):
        class State:
            def combine(self, gram, losses, drawn):
                return weight

        class Mine(Combiner, name="mine"):
            def build(self, setup):
                return State()

        return Mine

    stored = sources([made(1.0)])
    check_use(stored, [made(1.0)])
    with pytest.raises(RunError, match="expected --use test_methods_of_a_session"):
        check_use(stored, [made(2.0)])


FILE = """
from multitask.combiners import Combiner


class Mine(Combiner, name="mine"):
    def combine(self, gram, losses, drawn):
        return {weight}


def made():
    class Made(Combiner, name="made"):
        def combine(self, gram, losses, drawn):
            return {weight}

    return Made
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Import a file of methods, as a user's program does."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would hide a change of the same size
    (tmp_path / "methods_1.py").write_text(FILE.format(weight=1.0))
    invalidate_caches()
    yield import_module("methods_1")
    del sys.modules["methods_1"]


def edit(module):
    Path(module.__file__).write_text(FILE.format(weight=2.0))


def begin(method, folder):
    """Start a run as far as its files; return the code and checksums that it keeps."""
    config = RunConfig(tasks=("sst", "sts"), mode="multitask", encoder="tiny", combiner=method())
    assert not holds_finished(RunFolder(folder), config, resume=False, overwrite=False)
    make_ready(RunFolder(folder), config, overwrite=False)
    return (folder / "code" / "methods_1.py").read_text(), config.sources


def test_a_run_records_the_file_as_it_was_when_it_was_imported(module, tmp_path):
    first = module.Mine
    code, stored = begin(first, tmp_path / "first")
    assert code == FILE.format(weight=1.0)
    edit(module)
    assert begin(first, tmp_path / "second") == (code, stored)
    code, now = begin(reload(module).Mine, tmp_path / "third")
    assert code == FILE.format(weight=2.0)
    with pytest.raises(RunError, match="expected --use methods_1"):
        check_use(stored, [module.Mine])
    Path(module.__file__).unlink()
    assert begin(module.Mine, tmp_path / "fourth") == (code, now)


def test_a_file_of_use_that_changes_itself_has_the_checksum_of_the_code_that_ran(tmp_path):
    file = tmp_path / "methods_1.py"
    content = f"open(__file__, 'a').write('# changed')\n{FILE.format(weight=1.0)}"
    file.write_text(content)
    (method,) = load_methods(str(file))
    assert method().combine(None, None, None) == 1.0
    assert begin(method, tmp_path / "run")[0] == content


def test_attributes_of_a_method_are_not_changed():
    combiner = PCGrad()
    with pytest.raises(SettingsError, match="belongs in the object that its `build` returns"):
        combiner.counter = 1
