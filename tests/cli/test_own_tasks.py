"""A user's own file as a task: trained beside the built-in ones, compared, merged, probed."""

import json
import shutil
from pathlib import Path

import pytest

import cli

RUN = ("--encoder", "tiny", "--epochs", "1", "--limit", "40", "--dev-limit", "20")


@pytest.fixture(scope="module")
def moods(tmp_path_factory):
    """A file of 60 single texts in three classes, with odd names of columns; read only."""
    file = tmp_path_factory.mktemp("own") / "moods.csv"
    words = {"gut": "what a fine day", "schlecht": "what a dreadful day", "so lala": "a day"}
    lines = [f'"{text}, number {i}",{mood}' for i in range(20) for mood, text in words.items()]
    file.write_text("\n".join(["Was gesagt wurde,Wie", *lines]) + "\n")
    return f"moods={file}:type=classification,text=Was gesagt wurde,label=Wie"


@pytest.fixture(scope="module")
def trained(moods, tmp_path_factory):
    """Runs of two seeds on it; read only."""
    folders = [tmp_path_factory.mktemp("trained") / f"run{seed}" for seed in (1, 2)]
    for seed, folder in enumerate(folders, 1):
        single = ("--mode", "single", "--task", moods, *RUN, "--seed", str(seed))
        assert cli.main([*single, "--output", str(folder)]) == 0
    return folders


def test_one_command_trains_it_with_built_in_tasks(moods, tmp_path, run, ran, small):
    folder = tmp_path / "run"
    command = ("--mode", "multitask", "--tasks", "sst", "sts", "--task", moods, *RUN)
    command = (*command, "--pcgrad", "--sampling", "annealed", "--data", small)
    ran(*command, "--output", folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert set(metrics["dev"]) >= {"sst", "sts", "moods"}
    assert set(metrics["dev"]["moods"]) == {"accuracy", "macro_f1", "matthews"}
    assert set(metrics["test"]) == {"moods"}  # the others' test files have no labels
    lines = (folder / "predictions" / "moods-dev-output.csv").read_text().splitlines()
    assert lines[0] == "id \t Predicted_Label "
    assert {line.split(" , ")[1].strip() for line in lines[1:]} <= {"gut", "schlecht", "so lala"}
    again = run(*command, "--output", folder)
    assert "holds this run, finished" in again.stdout


def test_own_tasks_are_trained_by_themselves_unless_others_are_named(moods, tmp_path, run, ran):
    """Not beside the bundled sample, which is made from templates; a mixture is reported."""
    other = moods.replace("moods=", "spirits=", 1)
    plain = ("--mode", "multitask", "--dry-run", *RUN)
    found = ran(*plain, "--task", moods, "--task", other)
    assert "sst" not in found.stdout
    mixed = run(*plain, "--tasks", "sst", "sts", "--task", moods)
    (line,) = [one for one in mixed.stdout.splitlines() if "bundled sample" in one]
    assert line.startswith("sst, sts: trained on the bundled sample")
    assert "with your own moods; --data DIR reads real files" in line


def test_a_task_of_which_an_epoch_sees_less_than_half_is_reported(moods, tmp_path, run):
    flags = ("--mode", "multitask", "--tasks", "qqp", "--task", moods, "--encoder", "tiny")
    found = run(*flags, "--dry-run")
    (line,) = [one for one in found.stdout.splitlines() if "an epoch sees" in one]
    assert line.startswith("qqp: an epoch sees 48 of 480 examples")
    assert "--steps-per-epoch N or --sampling proportional" in line
    for change in (["--sampling", "proportional"], ["--steps-per-epoch", "30"]):
        assert "an epoch sees" not in run(*flags, *change, "--dry-run").stdout


def test_its_runs_are_listed_compared_and_merged(trained, tmp_path, run, ran):
    root = ("--mode", "runs", "--root", trained[0].parents[1])
    header, _, *rows = run(*root).stdout.splitlines()
    assert "moods accuracy" in header
    for folder in trained:
        (row,) = [line for line in rows if folder.name in line]
        metrics = json.loads((folder / "metrics.json").read_text())
        assert f"{metrics['dev']['moods']['accuracy']:.4f}" in row
    named = [f"{name}={folder}" for name, folder in zip(("one", "two"), trained, strict=True)]
    compared = ran("--mode", "compare", "--runs", *named, "--output", tmp_path / "page")
    assert "moods accuracy" in compared.stdout
    title = "moods: where the systems disagree the most"
    assert title in (tmp_path / "page" / "comparison.html").read_text()
    for name, runs in (
        ("vote", trained),
        ("average", [f"moods={folder}" for folder in trained]),
        ("both", [tmp_path / "vote", tmp_path / "average"]),
        ("soup", trained),
    ):
        method = ("--method", name) if name != "both" else ()
        merged = ("--mode", "ensemble", "--runs", *runs, *method, "--output", tmp_path / name)
        ran(*merged)
        assert (tmp_path / name / "predictions" / "moods-test-output.csv").exists()


@pytest.mark.parametrize(
    "flags",
    [
        "probe --limit 40 --task",
        "single --epochs 1 --limit 40 --objective epo --batch-size 10 --task",
        "single --epochs 1 --protocol few-shot --shots 9 --task",
        "pretrain --epochs 1 --limit 40 --objective simcse --tasks",
        "pretrain --epochs 1 --limit 40 --objective superloss --batch-size 6 --tasks",
    ],
)
def test_every_mode_takes_it(flags, moods, tmp_path, ran):
    command = ("--mode", *flags.split(), moods, "--encoder", "tiny", "--dev-limit", "20")
    ran(*command, "--output", tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["tasks"], list(config["own_tasks"])) == (["moods"], ["moods"])


def test_the_tasks_are_listed_with_what_was_read(moods, ran, small):
    found = ran("--mode", "tasks", "--task", moods, "--examples", "--data", small)
    rows = {line.split()[0]: line.split() for line in found.stdout.splitlines()[2:] if line.strip()}
    assert rows["moods"] == ["moods", "1", "text", "3", "classes", "48", "6", "6"]
    assert rows["sst"][-3:] == ["40", "40", "40"]
    assert "moods: what a" in found.stdout


def test_similarities_have_no_classes(tmp_path, refused):
    (tmp_path / "s.csv").write_text("a,b,y\n" + "x,y,1\nx,z,2\n" * 10)
    task = f"near={tmp_path}/s.csv:type=similarity,text=a,text=b,label=y"
    line = refused(2, "--mode", "single", "--task", task, "--objective", "scl")
    assert "--objective scl: expected a task with classes, found near" in line
    assert "with classes, found near" in refused(2, "--mode", "probe", "--task", task)


def test_runs_of_other_classes_are_neither_merged_nor_started_from(
    moods, trained, tmp_path, run, refused
):
    start = ("--mode", "single", *RUN[2:], "--init", trained[0], "--task")
    for order, heads in (("", "moods"), (",labels=so lala|schlecht|gut", "none")):
        found = run(*start, moods + order, "--output", tmp_path / heads)
        assert f"heads initialised from {trained[0]}: {heads}" in found.stdout, found.stderr
    runs = ("--mode", "ensemble", "--runs", trained[0], tmp_path / "none")
    assert "moods: labels: expected" in refused(1, *runs, "--output", tmp_path / "both")


def test_its_file_is_not_overwritten_by_its_run(moods, trained, tmp_path, refused):
    folder = Path(shutil.copytree(trained[0], tmp_path / "run"))
    source = moods.partition("=")[2].partition(":")[0]
    inside = Path(shutil.copy(source, folder / "predictions" / "mine.csv"))
    task = moods.replace(source, str(inside))
    again = ("--mode", "single", "--task", task, *RUN, "--output", folder, "--overwrite")
    assert "expected a path outside of" in refused(1, *again)
    assert inside.exists()


@pytest.fixture
def lengthy(tmp_path):
    """30 training rows of one text, three of them too long; 8 of dev, one of them too long."""
    for name, rows, long in (("learn", 30, 3), ("check", 8, 1)):
        texts = [f"{'a b ' * (100 if i < long else 1)}{i},{'yn'[i % 2]}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["t,y", *texts]) + "\n")
    files = f"{tmp_path}/learn.csv:dev={tmp_path}/check.csv,test={tmp_path}/check.csv"
    return f"lengthy={files},type=classification,text=t,label=y"


def test_texts_that_are_cut_are_counted_by_task_and_split(lengthy, tmp_path, ran):
    tasks = ("--tasks", "sts", "--task", lengthy)
    command = ("--mode", "multitask", *tasks, *RUN, "--batch-size", "8")
    found = ran(*command, "--output", tmp_path / "run")
    assert [line for line in found.stdout.splitlines() if line.endswith("cut")] == [
        "lengthy: 3 of 30 train texts are longer than 128 tokens and were cut",
        "lengthy: 1 of 8 dev texts is longer than 128 tokens and was cut",
        "lengthy: 1 of 8 test texts is longer than 128 tokens and was cut",
    ]
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["cut_texts"] == {"sts": [0, 80], "lengthy": [3, 30]}
    export = ("--mode", "export", "--run", tmp_path / "run", "--output", tmp_path / "out")
    ran(*export)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| longest text | 128 tokens |" in card
    assert "| longer training texts, cut | sts 0 of 80, lengthy 3 of 30 |" in card
    (tmp_path / "run" / "metrics.json").unlink()  # then it is not known
    ran(*export, "--overwrite")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| longest text | 128 tokens |" in card
    assert "longer training texts" not in card


def test_the_card_of_a_run_on_own_data_names_its_files_only(lengthy, moods, tmp_path, ran):
    export = ("--mode", "export", "--run", tmp_path / "run", "--output", tmp_path / "out")

    def card_of(*mode):
        ran("--mode", *mode, *RUN, "--output", tmp_path / "run", "--overwrite")
        ran(*export, "--overwrite")
        return (tmp_path / "out" / "README.md").read_text()

    card = card_of("single", "--task", lengthy)
    assert rows_of_data(card) == ["| data of lengthy | learn.csv, check.csv, classification |"]
    assert "sample" not in card
    assert str(tmp_path) not in card
    assert rows_of_data(card_of("multitask", "--tasks", "sst", "--task", moods)) == [
        "| data of sst | sample |",
        "| data of moods | moods.csv, classification |",
    ]
    assert rows_of_data(card_of("single", "--task", "sst")) == ["| data | sample |"]


def rows_of_data(card):
    return [line for line in card.splitlines() if line.startswith("| data")]
