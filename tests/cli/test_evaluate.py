"""--mode evaluate: leaderboard files are checked, scored and packed."""

import zipfile

import numpy as np
import pytest

from tasks import CS224N, build_task, data_folder
from tasks.metrics import overall
from tasks.predictions import Scores, scores_name, write_predictions, write_scores


@pytest.fixture
def predictions(tmp_path):
    """What somebody else's program might have written: the gold labels, some of them moved."""
    folder = tmp_path / "predictions"
    folder.mkdir()
    for name in CS224N:
        task = build_task(name)
        for split in ("dev", "test"):
            examples = task.read(data_folder("sample"), split)
            values = [0] * len(examples) if split == "test" else examples.targets.tolist()
            if split == "dev":
                values[:7] = values[7:14]
            write_predictions(folder / task.output.name(split), task.output, examples.ids, values)
    return folder


def test_scores_are_the_tasks_own(ran, predictions):
    found = ran("--mode", "evaluate", "--predictions", predictions.parent)
    metrics = {}
    for name in CS224N:
        task = build_task(name)
        gold = task.read(data_folder("sample"), "dev").targets
        moved = gold.copy()
        moved[:7] = moved[7:14]
        metrics[name] = task.kind.metrics(moved, gold)
    figures = {key: value for several in metrics.values() for key, value in several.items()}
    lines = [line.split() for line in found.stdout.splitlines()]
    for name, value in (overall(metrics) | figures).items():
        assert any(line[-2:] == [name, f"{value:.4f}"] for line in lines), name
    assert sum("sound" in line for line in lines) == 3 * 2 + 3  # two metrics a dev file


def test_a_submission_is_packed_the_same_each_time(run, predictions, tmp_path):
    archives = [tmp_path / "one.zip", tmp_path / "two.zip"]
    for archive in archives:
        call = ("--mode", "evaluate", "--predictions", predictions, "--zip", archive)
        assert run(*call).returncode == 0
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as packed:
        assert {n: packed.read(n) for n in packed.namelist()} == {
            path.name: path.read_bytes() for path in predictions.iterdir()
        }
    assert "--overwrite replaces it" in run(*call).stderr
    assert run(*call, "--overwrite").returncode == 0


def test_a_users_file_beside_the_archive_stays(run, predictions, tmp_path, monkeypatch):
    archive, mine = tmp_path / "one.zip", tmp_path / "one.zip.tmp"
    mine.write_text("mine")
    call = ("--mode", "evaluate", "--predictions", predictions, "--zip", archive)
    assert run(*call).returncode == 0
    assert mine.read_text() == "mine"
    before = archive.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    found = run(*call, "--overwrite")
    assert found.stderr == f"run.py: {archive}: No space left on device\n"
    assert archive.read_bytes() == before
    names = ["one.zip", "one.zip.tmp", "predictions"]
    assert sorted(one.name for one in tmp_path.iterdir()) == names


def test_wrong_values_are_not_packed_and_those_outside_of_the_scale_are_counted(
    run, ran, predictions, tmp_path
):
    file, archive = predictions / "sts-dev-output.csv", tmp_path / "one.zip"
    first, row, *rest = file.read_bytes().split(b"\n")
    call = ("--mode", "evaluate", "--predictions", predictions)
    file.write_bytes(b"\n".join([first, row.partition(b" , ")[0] + b" , nan ", *rest]))
    found = run(*call, "--zip", archive)
    assert (found.returncode, archive.exists()) == (1, False)
    (line,) = found.stderr.splitlines()
    assert "sts-dev-output.csv, line 2: expected a finite number such as 2.5" in line
    file.write_bytes(b"\n".join([first, row.partition(b" , ")[0] + b" , 1e39 ", *rest]))
    found = ran(*call)
    assert "1 values are outside of the scale" in found.stdout
    (line,) = [x for x in found.stdout.splitlines() if x.split()[-2:-1] == ["pearson"]]
    assert 0 < abs(float(line.split()[-1])) < 0.5  # one value outweighs all others


def test_examples_that_chose_members_are_reported(run, predictions):
    examples = build_task("sst").read(data_folder("sample"), "dev")
    values = np.eye(5)[examples.targets].astype(np.float32)
    marks = np.arange(len(examples)) < 9
    table = Scores(np.array(examples.ids), values, examples.targets, selected_on=marks)
    write_scores(predictions / scores_name("sst", "dev"), table)
    found = run("--mode", "evaluate", "--predictions", predictions)
    assert f"9 of these {len(marks)} examples chose the members of this ensemble" in found.stdout


def test_folders_without_predictions_or_gold_data(refused, predictions, tmp_path):
    call = ("--mode", "evaluate", "--predictions", tmp_path / "nothing")
    (tmp_path / "nothing").mkdir()
    assert "expected files such as" in refused(2, *call)
    assert "--overwrite: expected --zip" in refused(2, *call, "--overwrite")
    call = ("--mode", "evaluate", "--predictions", predictions, "--gold", tmp_path / "nothing")
    assert "ids-sst-dev.csv" in refused(1, *call)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--zip", "sub.tar"], "ends in .zip, found sub.tar"),
        (["--zip", "folder.zip"], "expected the name of a file that ends in .zip"),
        (["--zip", "nowhere/a.zip"], "expected a folder, found none at nowhere"),
        (["--zip", "a.zip", "--tasks", "sst"], "--zip and --tasks: expected at most one"),
    ],
)
def test_archives_that_cannot_be(refused, predictions, tmp_path, monkeypatch, flags, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.zip").mkdir()
    assert expected in refused(2, "--mode", "evaluate", "--predictions", predictions, *flags)


def test_tasks_that_are_asked_for_and_a_submission_have_all_files(run, predictions, tmp_path):
    for file in predictions.glob("*-test-*"):
        file.unlink()
    (predictions / "para-dev-output.csv").unlink()
    call = ("--mode", "evaluate", "--predictions", predictions)
    assert run(*call).returncode == 0
    found = run(*call, "--tasks", "sst", "qqp")
    assert found.returncode == 1
    assert "para-dev-output.csv: expected a prediction file, found none" in found.stderr
    found = run(*call, "--zip", tmp_path / "one.zip")
    assert found.returncode == 1
    assert found.stderr.count("test-output.csv: expected a prediction file, found none") == 3
    assert not (tmp_path / "one.zip").exists()
