"""Comparisons of two configurations that say when to stop, and the checks of their result."""

import json
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import cli
from common.errors import SettingsError, UserError
from common.json_files import SEAL, read_json, write_json, write_sealed
from multitask.loop.trainer import Trainer
from multitask.settings.config import RunConfig
from studies.until_sure import comparison
from studies.until_sure.comparison import FILE, compare_until_sure, sentence, summary
from studies.until_sure.sealed_comparison import read_comparison, verify, verify_data
from studies.until_sure.seed_pairs import SeedPair
from studies.until_sure.stopping import A_BETTER, B_BETTER, OPEN, SMALL
from tasks import CS224N

SMALL_RUN = {"encoder": "tiny", "limit": 16, "epochs": 1, "test_limit": 4, "linear": "mkl"}
BOTH = RunConfig(tasks=("sts",), **SMALL_RUN), RunConfig(tasks=("sts",), pooling="cls", **SMALL_RUN)
MARGIN = 0.1
pytestmark = pytest.mark.usefixtures("quick_comparisons")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, quick_comparisons) -> Path:
    """The folder of a comparison of three pairs; read only."""
    folder = tmp_path_factory.mktemp("finished") / "pooling"
    compare_until_sure(*BOTH, folder, MARGIN, most_seeds=3)
    return folder


def wrong(file: Path, data: str | None = None) -> dict[str, str]:
    return {name: line for name, line in verify(file, data) if line is not None}


# Real runs


def test_seeds_are_run_in_turn_and_the_result_is_sealed(finished):
    names = {f"{name}-seed{seed}" for name in "AB" for seed in (1, 2, 3)}
    assert {path.name for path in finished.iterdir()} == {*names, FILE}
    content = read_comparison(finished / FILE)
    for seed, pair in enumerate(content["pairs"], 1):
        for name in "AB":
            run = finished / f"{name}-seed{seed}"
            assert read_json(run / "config.json")["seed"] == seed
            pearson = read_json(run / "metrics.json")["dev"]["sts"]["pearson"]
            assert pair["scores"][name] == pytest.approx(100 * pearson, abs=1e-4)
    assert [content["configurations"][name]["pooling"] for name in "AB"] == [None, "cls"]
    assert content["score"] == {
        "name": "sts pearson",
        "metrics": {"sts": "pearson"},
        "examples": {"sts": 100},
    }
    assert content["leaks"]["A"]["sentences"].keys() == {"sts dev", "sts test"}
    assert content["splits"]["A"] == content["splits"]["B"]
    assert content["data"].keys() == {"sts train", "sts dev", "sts test"}
    assert "torch" in content["environment"]
    assert not [key for key in ("seed", str(finished)) if key in json.dumps(content["data"])]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"margin": 5.0}, "margin: expected 0.1"),
        ({"examples": "fixed"}, "examples: expected 'samp"),
    ],
)
def test_margin_and_population_stay_those_of_the_first_scores(finished, changes, message):
    before = (finished / FILE).read_bytes()
    with pytest.raises(UserError, match=message):
        compare_until_sure(*BOTH, finished, **{"margin": MARGIN, "most_seeds": 3} | changes)
    assert (finished / FILE).read_bytes() == before


def test_all_seeds_have_the_precision_of_the_first_one(tmp_path, bfloat16):
    folder = tmp_path / "both"
    for able in (True, False):  # the second machine has no bfloat16 instructions
        bfloat16(able)
        compare_until_sure(*BOTH, folder, MARGIN, most_seeds=3, budget=1e-9 if able else None)
    found = {read_json(run / "config.json")["precision"] for run in folder.glob("?-seed*")}
    content = read_comparison(folder / FILE)
    assert found == {content["configurations"][name]["precision"] for name in "AB"} == {"bf16"}


def test_every_check_passes_on_another_machine(finished, tmp_path):
    file = Path(shutil.copy(finished / FILE, tmp_path / "moved.json"))
    checks = dict(verify(file, "sample"))
    assert set(checks.values()) == {None}
    assert list(checks) == [
        *("checksum", "method", "scores", "intervals", "verdict", "reason"),
        *("data", "splits", "leaks"),
    ]


def test_checksums_that_an_older_file_lacks_are_no_fault(finished):
    content = read_comparison(finished / FILE)
    (first, digest), *others = content["data"].items()
    older = dict(verify_data({**content, "data": dict(others)}, "sample"))
    assert set(older.values()) == {None}
    changed = dict(verify_data({**content, "data": {**content["data"], first: "0"}}, "sample"))
    assert digest in str(changed["data"])


def test_a_comparison_whose_older_file_lacks_a_checksum_goes_on(finished, tmp_path):
    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    content = read_comparison(folder / FILE)
    kept = dict([*content["data"].items()][1:])
    write_sealed(folder / FILE, content | {"data": kept})
    again = compare_until_sure(*BOTH, folder, MARGIN, most_seeds=3)
    assert again["pairs"] == content["pairs"]
    (first, digest), *_ = kept.items()
    write_sealed(folder / FILE, content | {"data": kept | {first: "0"}})
    with pytest.raises(ValueError, match=f"data, {first}: expected {digest}, found 0; choose"):
        compare_until_sure(*BOTH, folder, MARGIN, most_seeds=3)


def test_finished_runs_are_not_repeated_and_more_seeds_go_on(finished, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    trained = []
    fit = Trainer.fit
    monkeypatch.setattr(Trainer, "fit", lambda self: (trained.append(self.folder.name), fit(self)))
    again = compare_until_sure(*BOTH, folder, MARGIN, most_seeds=3)
    assert trained == []
    content = read_comparison(finished / FILE)
    assert again["pairs"] == content["pairs"]
    more = compare_until_sure(*BOTH, folder, MARGIN, most_seeds=4)
    assert trained == ["A-seed4", "B-seed4"]
    assert more["pairs"][:3] == content["pairs"]
    assert wrong(folder / FILE) == {}


def test_fewer_seeds_or_minutes_keep_the_pairs_of_an_earlier_comparison(finished, tmp_path):
    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    longer = compare_until_sure(*BOTH, folder, MARGIN, most_seeds=4)
    for options, reason in (
        ({"most_seeds": 4, "budget": 1e-9}, "most seeds"),
        ({"most_seeds": 5, "budget": 1e-9}, "budget"),
        ({"most_seeds": 3}, "most seeds"),
    ):
        found = compare_until_sure(*BOTH, folder, MARGIN, **options)
        assert (found["pairs"], found["reason"]) == (longer["pairs"], reason)
        assert read_comparison(folder / FILE)["pairs"] == longer["pairs"]
        assert wrong(folder / FILE) == {}


def test_folders_of_runs_are_no_configurations(tmp_path):
    with pytest.raises(SettingsError, match="A: expected a RunConfig, found 'runs/a'"):
        compare_until_sure("runs/a", "runs/b", tmp_path / "out", MARGIN)


def test_an_interrupted_run_goes_on(finished, tmp_path):
    folder = tmp_path / "interrupted"
    finish = Trainer.finish_epoch

    def stop(trainer: Trainer, *rest: object) -> None:
        finish(trainer, *rest)
        if trainer.folder.name == "B-seed2":
            raise KeyboardInterrupt

    with mock.patch.object(Trainer, "finish_epoch", stop), pytest.raises(KeyboardInterrupt):
        compare_until_sure(*BOTH, folder, MARGIN, most_seeds=3)
    assert read_comparison(folder / FILE)["reason"] is None
    assert wrong(folder / FILE) == {}
    found = compare_until_sure(*BOTH, folder, MARGIN, most_seeds=3)
    one, two = (
        [pair["scores"] for pair in c["pairs"]] for c in (found, read_comparison(finished / FILE))
    )
    assert one == two


def test_other_configurations_or_data_need_another_folder(finished, tmp_path):
    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    with pytest.raises(ValueError, match=r"until-sure\.json: configurations, A, pooling: expected"):
        compare_until_sure(BOTH[1], BOTH[0], folder, MARGIN)


# Verdicts of invented scores


def invented(differences, variance=0.0, seconds=1.0):
    """A function in place of `train_pair`, whose pairs differ by these points of sts."""
    draws = np.random.default_rng(0).normal(0, 1, 2000)
    draws = (draws - draws.mean()) / draws.std(ddof=1) * variance**0.5

    def pair(configs, seed, folder, score):
        metrics = {"A": {"sts": 0.5 + differences[seed - 1] / 100}, "B": {"sts": 0.5}}
        times = {"A": seconds, "B": seconds}
        return SeedPair(seed, metrics, times, draws, {"sts": (900, "ids")})

    return mock.patch.object(comparison, "train_pair", pair)


@pytest.mark.parametrize(
    ("differences", "variance", "options", "verdict", "reason", "words"),
    [
        ([8, 8.1, 7.9], 0.1, {}, A_BETTER, "settled", "A is better; A - B is +8.00 points of sts"),
        ([-8, -8.1, -7.9], 0.1, {}, B_BETTER, "settled", "B is better; A - B is -8.00 points"),
        ([0, 0.01, -0.01], 0, {}, SMALL, "settled", "below the margin, margin 0.5; A - B is +0.00"),
        (
            [0.3, 0.3, 0.3, 0.3, 0.3, 0.3],
            0,
            {"examples": "fixed"},
            A_BETTER,
            "settled",
            "A is better, by less than the margin; ",
        ),
        ([0.2, 0.3, 0.2], 9, {}, OPEN, "few examples", "the dev set is too small"),
        ([9, -9, 9], 0.1, {"most_seeds": 3}, OPEN, "most seeds", "largest number of seeds"),
        ([9, -9], 0.1, {"budget": 5}, OPEN, "budget", "the budget is spent), margin 0.5; 2 pairs"),
    ],
)
def test_the_verdict_in_the_file_and_in_words(
    differences, variance, options, verdict, reason, words, tmp_path
):
    with invented(differences, variance):
        found = compare_until_sure(*BOTH, tmp_path / "out", 0.5, **options)
    assert (found["verdict"], found["reason"]) == (verdict, reason)
    assert words in sentence(found)
    assert len(summary(found).splitlines()) == len(found["pairs"]) + 4
    assert wrong(tmp_path / "out" / FILE) == {}


def test_seeds_with_other_dev_examples_are_refused(tmp_path):
    def pair(configs, seed, folder, score):
        metrics = {"A": {"sts": 0.5}, "B": {"sts": 0.5}}
        return SeedPair(seed, metrics, {"A": 1.0, "B": 1.0}, np.zeros(9), {"sts": (9, f"{seed}")})

    with (
        mock.patch.object(comparison, "train_pair", pair),
        pytest.raises(ValueError, match="sts: expected the dev examples of seed 1 for all seeds"),
    ):
        compare_until_sure(*BOTH, tmp_path / "out", 0.5)


# Edited results


@pytest.fixture
def sealed(finished, tmp_path):
    """`sealed(change)`: the result after a change, sealed again as a forger would."""

    def make(change) -> Path:
        content = read_json(finished / FILE)
        del content[SEAL]
        change(content)
        write_sealed(tmp_path / "edited.json", content)
        return tmp_path / "edited.json"

    return make


def test_an_edited_file_fails_at_its_checksum(finished, tmp_path):
    content = read_json(finished / FILE)
    write_json(tmp_path / "edited.json", content | {"verdict": A_BETTER})
    assert list(wrong(tmp_path / "edited.json")) == ["checksum"]
    assert list(wrong(tmp_path / "nowhere.json")) == ["checksum"]


def change_score(content):
    content["pairs"][1]["metrics"]["A"]["sts"] += 0.01


def leave_out_a_seed(content):
    del content["pairs"][1]


def widen(content):
    content["covariance"] = (np.array(content["covariance"]) * 1.1).tolist()


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        (change_score, ["scores"]),
        (leave_out_a_seed, ["scores", "intervals"]),
        (widen, ["intervals"]),
        (lambda c: c["covariance"][0].pop(), ["intervals"]),
        (lambda c: c.update(verdict=A_BETTER), ["verdict"]),
        (lambda c: c.update(reason="budget"), ["reason"]),
        (lambda c: c["method"].update(error=0.2), ["method"]),
        (lambda c: c["rule"].update(margin=50.0), ["verdict", "reason"]),
        (lambda c: c["score"].update(metrics={"sts": "nope"}), ["scores"]),
        (lambda c: c.update(kind="cell"), ["checksum"]),
        (lambda c: c["configurations"].pop("B"), ["checksum"]),
        (lambda c: c.pop("pairs"), ["checksum"]),
        (lambda c: c["data"].update({"sts dev": "0"}), ["data"]),
        (lambda c: c["splits"]["B"].update({"sts dev": "0"}), ["splits"]),
        (lambda c: c["leaks"]["A"]["pairs"].clear(), ["leaks"]),
        (lambda c: c["configurations"]["A"].update(tasks=["nope"]), ["data"]),
    ],
    ids=range(16),
)
def test_a_result_that_was_edited_and_sealed_again_fails(sealed, change, checks):
    assert list(wrong(sealed(change), "sample")) == checks


def test_another_resolution_changes_scores_and_intervals(sealed):
    changed = sealed(lambda content: content["rule"].update(resolution=0.0))
    # Whether the reason changes, too, depends on the scores.
    found = [name for name in wrong(changed, "sample") if name != "reason"]
    assert found == ["scores", "intervals"]


def test_other_data_fail(finished, tmp_path):
    data = Path(shutil.copytree(Path(cli.__file__).parents[1] / "tasks" / "sample", tmp_path / "d"))
    assert wrong(finished / FILE, str(data)) == {}
    file = data / "sts-dev.csv"
    file.write_text(file.read_text().rpartition("\n")[0].rpartition("\n")[0] + "\n")
    assert {"data", "splits"} <= wrong(finished / FILE, str(data)).keys()
    file.unlink()
    assert "data" in wrong(finished / FILE, str(data))


# The command line


@pytest.fixture
def command(tmp_path, capsys, monkeypatch):
    """`command(flags)` is the exit status, and what was printed."""
    monkeypatch.chdir(tmp_path)

    def call(*flags: object):
        try:
            status = cli.main(["--mode", "compare", *map(str, flags)])
        except SystemExit as ended:
            status = ended.code
        return status, *capsys.readouterr()

    return call


def test_the_command_goes_on_prints_the_verdict_and_verifies(finished, command, tmp_path):
    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    (tmp_path / "cls.yaml").write_text(
        "tasks: [sts]\npooling: cls\n" + "".join(f"{k}: {v}\n" for k, v in SMALL_RUN.items())
    )
    flags = ("--until-sure", "--margin", "0.1", "--budget", "6h", "--most-seeds", 3)
    status, out, _ = command(*flags, folder / "A-seed1", "cls.yaml", "--output", folder)
    assert status == 0
    assert "pair 3: A " in out
    assert "B: cls.yaml" in out
    assert "not settled (" in out
    status, out, _ = command("--verify", folder / FILE, "--data", "sample")
    assert (status, set(out.splitlines())) == (
        0,
        {f"{n}: ok" for n in dict(verify(folder / FILE, "sample"))},
    )
    content = read_json(folder / FILE)
    write_json(folder / FILE, content | {"reason": None})
    status, out, _ = command("--verify", folder / FILE)
    assert (status, len(out.splitlines())) == (1, 1)
    assert out.startswith("checksum: WRONG: ")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--runs, --advice, --until-sure, --verify: expected one of them, found none"),
        (("--runs", "a", "--verify", "b"), "expected one of them, found --runs and --verify"),
        (("--until-sure", "a", "b"), "--margin: expected a number of points, such as 0.3"),
        (("--until-sure", "--margin", "1", "a"), "--until-sure: expected two configurations, foun"),
        (("--until-sure", "--margin", "0", "a", "b"), "--margin: expected a number above 0"),
        (("--runs", "a", "--margin", "1"), "--margin: expected --until-sure, found --runs"),
        (("--verify", "a", "--embeddings", "pca"), "--embeddings: expected --runs or --advice, fo"),
        (("--verify", "a", "--output", "b"), "--output: not accepted with --verify"),
        (
            ("--until-sure", "--margin", "1", "a", "b", "--embeddings", "pca"),
            "--embeddings: expected --runs or --advice, found --until-sure",
        ),
        (("--runs", "a", "--data", "d"), "--data: expected --until-sure, found --runs"),
        (("--verify", "a", "--score", "d"), "--score: expected --until-sure, found --verify"),
        (("a", "--verify", "b"), "--verify: expected no other arguments, found 1"),
        (
            ("--until-sure", "--margin", "1", "--budget", "200", "a", "b"),
            "--budget: expected a time",
        ),
        (("--until-sure", "--margin", "1", "--examples", "some", "a", "b"), "--examples: invalid"),
        (
            ("--until-sure", "--margin", "1", "sts.yaml", "use.yaml"),
            "use.yaml: use: expected built",
        ),
        (("--until-sure", "--margin", "1", "sts.yaml", "bad.yaml"), "bad.yaml: epochs: expected"),
        (("--until-sure", "--margin", "1", "sts.yaml", "sst.yaml"), "tasks: expected a task in"),
        (
            ("--until-sure", "--margin", "1", "--score", "qqp", "sts.yaml", "sts.yaml"),
            "--score: expected one of sts, found 'qqp'",
        ),
        (
            ("--until-sure", "--margin", "1", "sts.yaml", "sts.yaml"),
            "expected two configurations that differ in more than the seed",
        ),
    ],
)
def test_wrong_flags_are_one_line(command, tmp_path, flags, message):
    for name, text in {
        "sts": "tasks: [sts]",
        "sst": "tasks: [sst]",
        "use": "tasks: [sts]\nuse: {a.py: x}",
        "bad": "tasks: [sts]\nepochs: 0",
    }.items():
        (tmp_path / f"{name}.yaml").write_text(f"{text}\n")
    status, out, err = command(*flags)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert message in line
    assert not list(tmp_path.glob("runs"))


def test_bad_data_is_one_line(command, tmp_path):
    for name, epochs in (("sts", 1), ("longer", 2)):
        settings = f"tasks: [sts]\nencoder: tiny\nepochs: {epochs}\n"
        (tmp_path / f"{name}.yaml").write_text(settings)
    flags = ("--until-sure", "--margin", 1, "sts.yaml", "longer.yaml", "--data", tmp_path / "none")
    status, _, err = command(*flags)
    assert (status, len(err.splitlines())) == (1, 1)
    status, _, err = command("--until-sure", "--margin", 1, "sts.yaml", "none.yaml")
    assert (status, err.count("none.yaml: expected a .json or .yaml file")) == (1, 1)


def test_several_tasks_are_compared_by_their_overall_score(tmp_path):
    one = RunConfig(tasks=CS224N, steps_per_epoch=1, **SMALL_RUN)
    other = one.changed(combiner="pcgrad")
    found = compare_until_sure(one, other, tmp_path / "out", 0.3, budget=1e-9)
    overall = [
        read_json(tmp_path / "out" / f"{name}-seed1" / "metrics.json")["dev"]["overall"]
        for name in "AB"
    ]
    scores = found["pairs"][0]["scores"]
    assert [scores["A"], scores["B"]] == pytest.approx([100 * x for x in overall], abs=1e-4)
    assert found["score"]["name"] == "overall"
