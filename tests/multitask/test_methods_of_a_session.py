"""Methods of a notebook, which have no file, and of files that change: which code a run records."""

import sys
from importlib import import_module, invalidate_caches, reload
from pathlib import Path

import pytest

from common.errors import RunError, SettingsError
from multitask import RunConfig
from multitask.combiners import Combiner
from multitask.combiners.pcgrad import PCGrad
from multitask.run import begin_folder
from multitask.settings.user_methods import check_use, sources


def of_a_session(weight):
    """Define a method as a session without a file does."""
    code = f"""class Tilted(Combiner, name="tilted"):
    def combine(self, gram, losses, drawn):
        return {weight}"""
    place = {"Combiner": Combiner, "__name__": "session"}
    exec(compile(code, "<stdin>", "exec"), place)
    return place["Tilted"]


def test_a_method_of_a_session_is_known_by_the_name_of_its_class():
    stored = sources([of_a_session(1.0)])
    assert list(stored) == ["Tilted"]
    check_use(stored, [of_a_session(2.0)])
    with pytest.raises(RunError, match="expected the method Tilted of a Python session"):
        check_use(stored, [])


FILE = """
from multitask.combiners import Combiner


class Mine(Combiner, name="mine"):
    def combine(self, gram, losses, drawn):
        return {weight}
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
    folder.mkdir()
    begin_folder(config, folder, {}, overwrite=False)
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


def test_attributes_of_a_method_are_not_changed():
    combiner = PCGrad()
    with pytest.raises(SettingsError, match="belongs in the object that its `build` returns"):
        combiner.counter = 1
