"""Settings chosen on dev: which points are tried, what is stored, and which cells take them."""

import json
from dataclasses import replace

import pytest
from cell_files import few_words, keep_seeds

from common.errors import UserError
from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from studies import STUDIES
from studies.fairness import end_of_grid_reason, tuning_reason
from studies.lacon import cells as lacon
from studies.results import Results
from studies.scl_moo.cells import Experiments
from studies.study import StudyRequest, find_study
from studies.supercontext import cells as supercontext
from studies.tuning import (
    Search,
    best_point,
    point_beyond,
    points_tried,
    rates_tried,
    tune,
    tuned_settings,
    tuning_table,
)

BASE = RunConfig(mode="single", tasks=(), encoder="tiny", optimizer={"lr": 1e-4, "head_lr": 1e-4})
DEV = ("dev", "sst2", "accuracy")


@pytest.fixture
def data(tmp_path):
    return few_words(tmp_path / "data", "SST-2", train=60, dev=24)


@pytest.fixture
def search():
    """Return a search whose runs are replaced by a formula: dev is best at a rate of 3e-4."""
    trained = []

    def run(config, folder):
        folder.mkdir(parents=True, exist_ok=True)
        lr, weight = config.optimizer.lr, config.objective.weight
        trained.append((lr, weight, config.seed))
        if weight == 0.9:
            raise UserError("diverged")
        accuracy = 0.9 - abs(lr - 3e-4) * 100 - config.seed / 1000
        found = {"dev": {"sst2": {"accuracy": accuracy}}, "test": {"sst2": {"accuracy": 0.0}}}
        return found | {"environment": {"date": "2100-01-01"}}

    cell = Experiments(BASE, epochs=1).few_shot("sst2", 50, "scl")
    grid = {"lr": (1e-4, 3e-4), "scl_weight": (0.1, 0.9)}
    return Search(replace(cell, run_function=run), grid, DEV), trained


@pytest.fixture(autouse=True)
def no_data_recorded(monkeypatch):
    for module in ("runner", "tuning"):
        monkeypatch.setattr(f"studies.{module}.record_examples", lambda *arguments: None)


@pytest.fixture
def small_grid(monkeypatch):
    find_study("scl-moo")  # the claims are imported with the whole grid
    monkeypatch.setattr("studies.scl_moo.cells.GRID", (0.3,))


def test_the_best_point_on_dev_is_chosen_and_nothing_is_repeated(search, tmp_path):
    one, trained = search
    folders = tmp_path / "results", tmp_path / "runs"
    failed = tune([one], 4, *folders)
    assert len(failed) == 6
    assert all("diverged" in line for line in failed)
    assert {seed for *_, seed in trained} == {1, 2, 3}
    (file,) = (tmp_path / "results/tuning").glob("*.json")
    stored = json.loads(file.read_text())
    assert [set(point["dev"]) for point in stored["points"]] == [{"1", "2", "3"}] * 2
    assert "test" not in json.dumps(stored["points"])
    assert tuned_settings([one], tmp_path / "results") == {
        one.cell.name: {"lr": 3e-4, "scl_weight": 0.1}
    }
    assert {point["date"] for point in stored["points"]} == {"2100-01-01"}
    before = len(trained)
    tune([one], 4, *folders)
    assert {weight for _, weight, _ in trained[before:]} == {0.9}  # only what failed


def test_rates_beyond_the_grid_are_tried_while_the_best_is_at_its_end(search, tmp_path):
    one, trained = search
    results, runs = tmp_path / "results", tmp_path / "runs"
    lower = replace(one, grid={"lr": (1e-5, 3e-5), "scl_weight": (0.1,)})
    assert tune([lower], 2, results, runs) == []  # dev is best at 3e-4
    assert rates_tried(lower, results) == {1e-5, 3e-5, 9e-5, 2.7e-4, 8.1e-4}
    assert tuned_settings([lower], results)[one.cell.name]["lr"] == 2.7e-4
    assert points_tried(lower, results) == 2
    assert tuning_table([lower], results)[1][0][-2:] == ["2 + 3", "3"]
    before = len(trained)
    tune([lower], 2, results, runs)
    assert len(trained) == before  # at most three points


def test_a_rate_within_the_grid_ends_the_search(search, tmp_path):
    one, _ = search
    results, runs = tmp_path / "results", tmp_path / "runs"
    higher = replace(one, grid={"lr": (1e-3, 3e-3), "scl_weight": (0.1,)})
    tune([higher], 2, results, runs)
    assert rates_tried(higher, results) == {1e-3, 3e-3, 3.33e-4, 1.11e-4}
    assert point_beyond(higher, results) is None


@pytest.mark.usefixtures("small_grid")
def test_settings_of_stored_cells_stay(reproducing, data, tmp_path, monkeypatch):
    """No rate beyond the grid is tried for them, so that a finished command can be repeated."""
    monkeypatch.setattr("studies.tuning.SEEDS", 1)
    monkeypatch.setattr("studies.tuning.BEYOND", 0)
    call = reproducing("scl-moo", "--data", data, "--encoder", "tiny", "--epochs", 1)
    rows = ("--rows", "few-shot-sst2-50-ce", "--seeds", 1, "--tune", 3)
    assert call(*rows)[0] == 0
    page = (tmp_path / "scl_moo.md").read_text()
    monkeypatch.setattr("studies.tuning.BEYOND", 3)
    assert call(*rows)[0] == 0
    assert (tmp_path / "scl_moo.md").read_text() == page
    _, said = call(*rows, "--dry-run")
    assert said.out.splitlines()[-1].split()[:2] == ["all", "0"]


def test_points_of_another_configuration_are_refused(search, tmp_path):
    one, _ = search
    tune([one], 4, tmp_path / "results", tmp_path / "runs")
    other = replace(one.cell, config=one.cell.config.changed(pooling="mean"))
    with pytest.raises(UserError, match="a cell of another configuration"):
        tuned_settings([replace(one, cell=other)], tmp_path / "results")


def test_cells_take_the_settings_of_their_method():
    tuned = {"few-shot-sst2-50-ce": {"lr": 3e-4}, "few-shot-sst2-50-ls": {"scl_weight": 0.7}}
    cells = Experiments(BASE, tuned=tuned)
    for shots in (20, 50, 100):
        for name in ("ce", "ce-balanced"):
            found = cells.few_shot("sst2", shots, name).config.optimizer
            assert (found.lr, found.head_lr) == (3e-4, 3e-4)
        assert cells.few_shot("sst2", shots, "ls").config.objective.weight == 0.7
    assert cells.full("sst2", "ce").config.optimizer.lr == 1e-4
    assert cells.sweep("scl_weight", 0.7, "ls") == cells.few_shot("sst2", 50, "ls")


def test_parts_of_lacon_take_its_settings():
    tuned = {
        "main-rte-lacon": {"lr": 5e-5, "label_temperature": 0.3, "label_spread": 1.0},
        "main-rte-ce": {"lr": 7e-5},
    }
    cells = lacon.Experiments(BASE, tuned=tuned)
    for one in (cells.main("rte", "lacon-mean"), cells.ablation("rte", "no-icl")):
        found = one.config.optimizer
        assert (found.lr, found.head_lr, one.config.objective.label_spread) == (5e-5, 5e-5, 1.0)
    without = cells.ablation("rte", "no-ler").config.objective
    assert (without.label_temperature, without.label_spread) == (0.3, 0.5)
    assert cells.ablation("rte", "projection").config.optimizer.lr == 7e-5
    assert cells.sweep("rte", "tau", 0.3) == cells.main("rte", "lacon")


def test_heads_and_hard_negatives_take_the_settings_of_superloss():
    tuned = {"given-sst2-superloss": {"lr": 3e-5, "contrast_temperature": 0.5}}
    cells = supercontext.Experiments(BASE, tuned=tuned)
    for one in (
        cells.main("given", "sst2", "superloss"),
        cells.head("given", "sst2", "none"),
        cells.hard("given", "sst2", "top_k", 5),
    ):
        config = one.config
        assert (config.optimizer.lr, config.objective.contrast_temperature) == (3e-5, 0.5)


@pytest.mark.parametrize("name", STUDIES)
def test_every_point_of_every_grid_is_a_valid_configuration(name, tmp_path):
    study = find_study(name)
    for search in study.searches(StudyRequest(BASE, tmp_path, tmp_path)):
        for point in search.points(5):
            changed = search.trial(point, 1).config
            assert changed == changed_by_flags(changed, **point)
            assert changed.optimizer.lr == point["lr"]


@pytest.mark.usefixtures("small_grid")
def test_the_command_tunes_then_trains_with_what_it_chose(reproducing, data, tmp_path):
    call = reproducing("scl-moo", "--data", data, "--encoder", "tiny", "--epochs", 1)
    rows = ("--rows", "few-shot-sst2-50-scl", "--seeds", 1)
    status, said = call(*rows, "--tune", 2)
    assert status == 0, said.err
    page = (tmp_path / "scl_moo.md").read_text()
    assert "## Settings chosen on dev" in page
    stored = json.loads((tmp_path / "scl_moo/tuning/few-shot-sst2-50-scl.json").read_text())
    assert len(stored["points"]) >= 2  # further ones if the best is at an end
    chosen = best_point(stored["points"])["settings"]
    cell = json.loads((tmp_path / "scl_moo/few-shot-sst2-50-scl.json").read_text())
    assert cell["config"]["optimizer"]["lr"] == chosen["lr"]
    assert call(*rows, "--tune", 2, "--stored-only")[0] == 0
    assert (tmp_path / "scl_moo.md").read_text() == page
    status, said = call(*rows, "--tune", 3, "--stored-only")
    assert status == 1
    line = "--tune: expected 3 stored points of few-shot-sst2-50-scl with --stored-only, found 2"
    assert line in said.err


def test_claims_of_tuned_cells_do_not_name_tuning_as_a_reason(search, tmp_path):
    one, _ = search
    results, name = Results(tmp_path / "results"), one.cell.name
    tune([one], 1, results.folder, tmp_path / "runs")  # perhaps the point that fails
    tune([one], 4, results.folder, tmp_path / "runs")
    assert tuning_reason(results, [one], {name}, "not tuned") == ["not tuned"]  # no figures
    other = replace(one, cell=replace(one.cell, name="other"))
    for cell in (one.cell, other.cell):
        keep_seeds(results.file(cell), cell.config.to_json(), {"1": {"dev": {}}})
    assert tuning_reason(results, [one], {name}, "not tuned") == []
    assert tuning_reason(results, [one], {}, "not tuned") == ["not tuned"]
    found = tuning_reason(results, [one, other], {name, "other"}, "not tuned")
    assert found == ["fewer points were tried for other"]


def test_a_rate_at_an_end_of_those_tried_is_a_reason_for_the_method_that_is_behind(
    search, tmp_path
):
    one, _ = search
    results, name = Results(tmp_path / "results"), one.cell.name
    grid = {"lr": (1e-4, 2e-4, 3e-4), "scl_weight": (0.1,)}
    one = replace(one, grid=grid)
    tune([one], 3, results.folder, tmp_path / "runs")
    assert rates_tried(one, results.folder) == {1e-4, 2e-4, 3e-4, 9e-4}
    ahead, behind = ({("sst2", 1): sign} for sign in (0.1, -0.1))
    reason = [f"the rate of {name} is at an end of those tried"]

    def found(pairs, rate, ours=(one,), rivals=()):
        return end_of_grid_reason(results, ours, rivals, {name: {"lr": rate}}, pairs)

    assert found(behind, 9e-4) == found(behind, 1e-4) == reason
    assert found(behind, 3e-4) == found(ahead, 9e-4) == found({}, 9e-4) == []
    assert found(ahead, 9e-4, (), (one,)) == reason
    assert found({("cola", 1): -0.1}, 9e-4) == []
    assert end_of_grid_reason(results, [one], [], {}, behind) == []


@pytest.mark.usefixtures("small_grid")
def test_stored_cells_are_not_made_stale_by_a_later_choice(reproducing, data):
    call = reproducing("scl-moo", "--data", data, "--encoder", "tiny", "--epochs", 1)
    rows = ("--rows", "few-shot-sst2-50-ce", "--seeds", 1)
    assert call(*rows)[0] == 0
    status, said = call(*rows, "--tune", 1)
    assert (status, "--tune: expected a --results without cells" in said.err) == (1, True)
    assert call(*rows, "--stored-only")[0] == 0
