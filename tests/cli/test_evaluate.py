"""Mode evaluate: leaderboard files are checked, scored and packed."""

import json
import shutil
import zipfile

import pytest

from tasks import CS224N, build_task, data_folder
from tasks.metrics import overall
from tasks.predictions import write_prediction_file


@pytest.fixture
def predictions(tmp_path):
    """The gold labels, some of them moved, as another program might write them."""
    folder = tmp_path / "predictions"
    folder.mkdir()
    for name in CS224N:
        task = build_task(name)
        for split in ("dev", "test"):
            examples = task.read(data_folder("sample"), split)
            values = [0] * len(examples) if split == "test" else examples.targets.tolist()
            if split == "dev":
                values[:7] = values[7:14]
            write_prediction_file(
                folder / task.output.name(split), task.output, examples.ids, values
            )
    return folder


@pytest.fixture
def evaluate(predictions):
    return ("--mode", "evaluate", "--predictions", predictions)


def test_metrics_are_those_of_the_tasks(run_ok, predictions):
    result = run_ok("--mode", "evaluate", "--predictions", predictions.parent)
    metrics = {}
    for name in CS224N:
        task = build_task(name)
        gold = task.read(data_folder("sample"), "dev").targets
        moved = gold.copy()
        moved[:7] = moved[7:14]
        metrics[name] = task.kind.metrics(moved, gold)
    figures = {key: value for several in metrics.values() for key, value in several.items()}
    lines = [line.split() for line in result.stdout.splitlines()]
    for name, value in (overall(metrics) | figures).items():
        assert any(line[-2:] == [name, f"{value:.4f}"] for line in lines), name
    assert sum("valid" in line for line in lines) == 3 * 2 + 3  # two metrics per dev file


def test_a_submission_is_packed(run_ok, error_line, evaluate, predictions, tmp_path):
    archives = [tmp_path / "one.zip", tmp_path / "two.zip"]
    for archive in archives:
        run_ok(*evaluate, "--zip", archive)
    before = archives[0].read_bytes()
    assert archives[1].read_bytes() == before
    with zipfile.ZipFile(archives[0]) as packed:
        assert {n: packed.read(n) for n in packed.namelist()} == {
            path.name: path.read_bytes() for path in predictions.iterdir()
        }
    call = (*evaluate, "--zip", archives[1])
    assert "add --overwrite for a file" in error_line(1, *call)
    run_ok(*call, "--overwrite")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["one.zip", "predictions", "two.zip"]


@pytest.mark.parametrize(
    ("flags", "status", "expected"),
    [
        ("--predictions nothing", 2, "no files such as"),
        ("--zip folder", 2, "the name must end in .zip"),
    ],
)
def test_wrong_folders_and_archives_are_refused(error_line, evaluate, cwd, flags, status, expected):
    (cwd / "nothing").mkdir()
    assert expected in error_line(status, *evaluate, *flags.split())


@pytest.mark.parametrize(
    ("file", "content", "line"),
    [
        ("data/sts-dev.csv", None, "data/sts-dev.csv: cannot be read: No such file"),
        ("data/sts-dev.csv", b"id\tsim\n1\t2\n", "sts-dev.csv, line 1: expected a column"),
        ("predictions/sts-dev-output.csv", b"Once upon a time\n", "line 1: expected the header"),
        ("predictions/sts-dev-probabilities.npz", b"x", "expected a run's probabilities"),
    ],
)
def test_one_bad_file_does_not_hide_the_scores_of_others(
    file, content, line, run, evaluate, tmp_path
):
    shutil.copytree(data_folder("sample"), tmp_path / "data")
    (tmp_path / file).unlink(missing_ok=True)
    if content is not None:
        (tmp_path / file).write_bytes(content)
    result = run(*evaluate, "--data", tmp_path / "data")
    assert result.returncode == 1
    assert line in result.stderr
    assert "predictions/sts-dev-output.csv" in result.stderr
    assert result.stdout.count("valid") == 2 * 2 + 3  # two metrics of sst and qqp on dev, and test


def test_a_file_of_no_task_is_named_beside_the_scores_of_others(run, evaluate, predictions):
    stray = predictions / "etpc-paraphrase-generation-test-output.csv"
    stray.write_text("id,generated\n1,a text\n")
    result = run(*evaluate)
    assert result.returncode == 1
    assert f"{stray}: no task has a file of this name" in result.stderr
    assert result.stdout.count("valid") == 3 * 2 + 3


def test_a_run_is_evaluated_on_its_own_data(run_ok, evaluate, predictions, tmp_path):
    """The folder of the data is that of the run; the sample's files are no submission."""
    shown = run_ok(*evaluate, "--zip", tmp_path / "a.zip").stdout
    assert "data: the bundled sample;" in shown
    assert shown.endswith("for the bundled sample, not for the course's files\n")
    shutil.copytree(data_folder("sample"), tmp_path / "course")
    (predictions.parent / "config.json").write_text(json.dumps({"data": str(tmp_path / "course")}))
    for folder in (predictions.parent, predictions):
        found = run_ok("--mode", "evaluate", "--predictions", folder)
        assert f"data: {tmp_path / 'course'};" in found.stdout


def test_all_files_of_a_submission_are_required(run, run_ok, evaluate, predictions, tmp_path):
    for file in (*predictions.glob("*-test-*"), predictions / "para-dev-output.csv"):
        file.unlink()
    assert run_ok(*evaluate).stdout.count("valid") == 2 * 2
    result = run(*evaluate, "--tasks", "sst", "qqp")
    assert result.returncode == 1
    assert "para-dev-output.csv: the file is missing" in result.stderr
    result = run(*evaluate, "--zip", tmp_path / "one.zip")
    assert result.returncode == 1
    assert result.stderr.count("test-output.csv: the file is missing") == 3
    assert not (tmp_path / "one.zip").exists()
