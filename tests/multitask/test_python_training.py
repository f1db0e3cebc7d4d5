"""`train` and `Run` from Python: their results depend on the configuration only."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import RunError
from common.files import read_state
from minbert.weights import read_tensors
from multitask import Run, RunConfig, train
from multitask.combiners import Combined, Combiner
from multitask.regularizers import Regularizer
from multitask.run_folder import RunFolder

TINY = {"encoder": "tiny", "limit": 8, "dev_limit": 8, "test_limit": 8, "epochs": 1}
ONE = RunConfig(tasks=("sts",), **TINY)
TWO = RunConfig(tasks=("sst", "sts"), **TINY)


def weights(run):
    found = {}
    for file in sorted((run.folder / "best").rglob("*.safetensors")):
        found |= {f"{file.name}/{key}": value for key, value in read_tensors(file).items()}
    assert found
    return found


def test_a_run_is_found_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(Path("tasks/sample").absolute())
    monkeypatch.setenv("HOME", str(tmp_path))
    config = ONE.changed(data="~/data")
    assert config.data == str(tmp_path / "data")
    run = train(config, "~/run")
    assert run.folder == tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    again = Run("run")
    monkeypatch.chdir(tmp_path / "data")
    assert again.metrics == run.metrics != {}


class Constant(Regularizer, name="constant"):
    """A term that is not one number with a gradient."""

    kind: str = "detached"

    def term(self, clean):
        terms = {
            "detached": 0 * clean.loss.detach() + 2,
            "vector": clean.loss.expand(3),
        }
        return terms[self.kind]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("detached", "2 without a gradient"),
        ("vector", "a tensor of 3 numbers"),
    ],
)
def test_a_term_without_a_gradient_is_refused(kind, found, tmp_path):
    config = ONE.changed(regularizers=(Constant(weight=1.0, kind=kind),))
    line = "regularizer constant: expected a term of one number with a gradient, or 0"
    with pytest.raises(RunError, match=f"{line}, found {found}$"):
        train(config, tmp_path / "run")


class State:
    """Counts of objectives in a form that JSON does or does not keep."""

    needs_rows = True

    def __init__(self, form):
        self.form, self.seen = form, np.zeros(2)

    def combine(self, gram, losses, drawn):
        self.seen[list(drawn)] += 1
        return Combined(np.ones(len(drawn)), "counted")

    def state_dict(self):
        forms = {
            "lists": self.seen.tolist(),
            "array": self.seen,
            "nan": [float("nan"), (1, 2)],
        }
        return {"seen": forms[self.form]}

    def load_state_dict(self, state):
        self.seen = np.asarray(state["seen"])


class Counting(Combiner, name="counting"):
    """A combiner with a state."""

    form: str = "lists"

    def build(self, setup):
        return State(self.form)


def test_a_state_that_a_checkpoint_cannot_keep_is_refused_after_the_first_step(tmp_path):
    config = TWO.changed(combiner=Counting(form="array"), steps_per_epoch=10, limit=None)
    with pytest.raises(RunError, match=r"counting: expected a state of JSON .*type ndarray"):
        train(config, tmp_path / "run")
    assert RunFolder(tmp_path / "run").newest("best") is None


@pytest.mark.parametrize("form", ["lists", "nan"])
def test_a_state_of_json_values_is_kept(form, tmp_path):

    def interrupt(_):
        raise KeyboardInterrupt

    config = TWO.changed(combiner=Counting(form=form), epochs=2)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", callbacks=[interrupt])
    seen = read_state(RunFolder(tmp_path / "run").newest("last"))["combiner"]["seen"]
    if form == "lists":
        steps = (tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()
        assert seen == [len(steps)] * 2
    else:
        assert np.isnan(seen[0])
        assert seen[1] == [1, 2]
