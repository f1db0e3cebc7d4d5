"""Averaged weights: the mean, soups of identical runs, greedy selection."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from common.errors import RunError
from ensemble import soup
from ensemble.runs import soup_runs
from ensemble.soup import make_soup, mean_weights
from multitask.assembly import Assembly
from multitask.folds import fold_config
from multitask.run import complete
from multitask.settings.config import RunConfig
from tasks.own_tasks import task
from tasks.predictions import PredictionError

SHORT = {"encoder": "tiny", "limit": 40, "epochs": 1, "batches_per_step": 2, "linear": "mkl"}
CONFIG = RunConfig(mode="multitask", tasks=("sst", "sts"), lr=1e-3, head_lr=1e-2, **SHORT)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """Two seeds of one configuration."""
    folder = tmp_path_factory.mktemp("pool")
    for seed in (1, 2):
        complete(replace(CONFIG, seed=seed), folder / f"seed{seed}")
    return folder


def test_the_mean_is_added_up_in_float64():
    torch.manual_seed(0)
    several = [{"w": torch.randn(50, 4), "b": torch.randn(4)} for _ in range(7)]
    found = mean_weights(several)
    for name in ("w", "b"):
        expected = np.mean([weights[name].double().numpy() for weights in several], axis=0)
        np.testing.assert_array_equal(found[name].numpy(), expected.astype(np.float32))


@pytest.mark.parametrize("greedy", [False, True])
def test_a_soup_of_identical_runs_is_the_run(pool, tmp_path, greedy):
    shutil.copytree(pool / "seed1", tmp_path / "copy")
    soup_runs([pool / "seed1", tmp_path / "copy"], greedy, 0, tmp_path / "soup")
    files = sorted(path.name for path in (pool / "seed1" / "predictions").glob("*.csv"))
    assert len(files) == 4
    for name in files:
        one, other = (run / "predictions" / name for run in (pool / "seed1", tmp_path / "soup"))
        assert one.read_bytes() == other.read_bytes()


def test_a_soup_has_the_mean_weights_and_is_a_run_to_start_from(pool, tmp_path):
    runs = [pool / "seed1", pool / "seed2"]
    result = soup_runs(runs, False, 0, tmp_path / "soup")
    assert set(result["members"]["sst"]["weights"]) == {"seed1", "seed2"}
    again = make_soup([tmp_path / "soup"], False, 0)
    singles = [make_soup([run], False, 0).built.model.state_dict() for run in runs]
    found = again.built.model.state_dict()
    for name, expected in mean_weights(singles).items():
        torch.testing.assert_close(found[name], expected, rtol=0, atol=0)
    assert not torch.equal(
        singles[0]["heads.sst.output.weight"], singles[1]["heads.sst.output.weight"]
    )
    following = replace(CONFIG, init=str(tmp_path / "soup"))
    assert "dev" in complete(following, tmp_path / "following")


def test_a_soup_reads_texts_as_runs_that_start_from_another_run(tmp_path):
    start = replace(CONFIG, pooling="cls", max_tokens=8)
    complete(start, tmp_path / "start")
    run, copy = tmp_path / "run", tmp_path / "copy"
    complete(replace(CONFIG, init=str(tmp_path / "start")), run)
    shutil.copytree(run, copy)
    soup_runs([run, copy], False, 0, tmp_path / "soup")
    for name in ("sst-dev-output.csv", "sts-dev-output.csv"):
        one, other = (folder / "predictions" / name for folder in (run, tmp_path / "soup"))
        assert one.read_bytes() == other.read_bytes()
    complete(CONFIG, tmp_path / "mean")
    with pytest.raises(RunError, match=r"expected pooling cls as .* found mean"):
        make_soup([run, tmp_path / "mean"], False, 0)


def test_a_soup_of_runs_that_pool_by_their_objective(tmp_path):
    run, copy = tmp_path / "run", tmp_path / "copy"
    complete(RunConfig(tasks=("sst",), objective="leam", **SHORT), run)
    shutil.copytree(run, copy)
    soup_runs([run, copy], False, 0, tmp_path / "soup")
    one, other = (
        folder / "predictions" / "sst-dev-output.csv" for folder in (run, tmp_path / "soup")
    )
    assert one.read_bytes() == other.read_bytes()


def test_a_greedy_soup_keeps_models_that_improve_the_mean(monkeypatch):
    """The best alone, 0.2, then 1.0, whose mean with it is nearer to 0.5; no other."""
    model = torch.nn.Linear(1, 1, bias=False)
    built = Assembly({}, model, {})
    monkeypatch.setattr(soup, "dev_metrics", lambda *_: float(model.weight.detach()))
    monkeypatch.setattr(soup, "selection_score", lambda found, _: -abs(found - 0.5))
    several = [{"weight": torch.tensor([[value]])} for value in (1.0, 0.2, 3.0, -0.3)]
    assert soup.greedy_soup(several, built, {}) == [1, 0]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tasks": ["sst"]}, "expected tasks"),
        ({"encoder": "another"}, "expected encoder tiny as .* found another"),
        ({"objective": "simcse", "mode": "pretrain"}, "found one of mode pretrain"),
    ],
)
def test_runs_with_different_settings_are_refused(pool, tmp_path, changes, expected):
    other = Path(shutil.copytree(pool / "seed2", tmp_path / "other"))
    content = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(content | changes))
    with pytest.raises(RunError, match=expected):
        make_soup([pool / "seed1", other], False, 0)
    with pytest.raises(RunError, match="expected a run with checkpoint/best"):
        make_soup([tmp_path], False, 0)


def test_members_split_their_own_tasks_in_one_way(tmp_path):
    """Else one has learnt from dev or test rows of another."""
    (tmp_path / "own.csv").write_text("a,y\n" + "".join(f"text {n},{n % 2}\n" for n in range(30)))
    config = RunConfig(
        tasks=(task(f"own={tmp_path}/own.csv:type=classification,text=a,label=y"),), encoder="tiny"
    )
    one, other = (soup.shared(fold_config(config, fold, 3), "own_tasks") for fold in (1, 2))
    assert one == soup.shared(fold_config(config.changed(seed=2), 1, 3), "own_tasks")
    assert one != other != soup.shared(config, "own_tasks")


def test_soups_can_be_averaged_and_record_their_members(pool, tmp_path):
    runs = [pool / "seed1", pool / "seed2"]
    first = soup_runs(runs, True, 5, tmp_path / "soup")
    for found in first["members"].values():
        assert found["reported_examples"] == found["selected_on_examples"] == 50
    kept = json.loads((tmp_path / "soup" / "config.json").read_text())
    assert (kept["mode"], kept["method"], kept["seed"]) == ("soup", "greedy-soup", 5)
    assert kept["members"] == [str(run) for run in runs]
    result = soup_runs([tmp_path / "soup", runs[0]], False, 0, tmp_path / "again")
    assert result["members"]["sst"]["selected_on_examples"] == 50
    with pytest.raises(PredictionError, match="than a member's folder"):
        soup_runs(runs, False, 0, runs[0], overwrite=True)


def test_runs_of_files_that_were_changed_are_refused(pool, tmp_path):
    other = Path(shutil.copytree(pool / "seed2", tmp_path / "other"))
    stored = json.loads((other / "data.json").read_text())
    (other / "data.json").write_text(json.dumps(stored | {"sst dev": "0" * 64}))
    line = "other: expected the file of sst dev that this run read, found another one"
    with pytest.raises(RunError, match=line):
        make_soup([pool / "seed1", other], False, 0)
    (other / "data.json").write_text(json.dumps(stored | {"sst train": "0" * 64}))
    make_soup([pool / "seed1", other], False, 0)
