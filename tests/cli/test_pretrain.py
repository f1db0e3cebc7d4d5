"""--mode pretrain: every objective, what is refused, and a later run that starts from it."""

import json

import pytest

TINY = ("--mode", "pretrain", "--encoder", "tiny")
SHORT = ("--limit", "40", "--batch-size", "16")
NLI = "sent0,sent1,hard_neg\n" + "".join(f"a man {i},a person {i},a dog {i}\n" for i in range(30))


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], "--objective: expected one of simcse, nli, pairs"),
        (["--objective", "pairs", "--tasks", "sst"], "--tasks: expected qqp or sts with obj"),
        (["--objective", "nli"], "--nli: expected a file with objective nli, found none"),
        (["--objective", "simcse", "--nli", "x"], "--nli: expected objective nli, found 'x'"),
        (["--objective", "nli", "--nli", "x", "--tasks", "sst"], "--tasks: expected none"),
        (["--objective", "simcse", "--text", "x", "--tasks", "sst"], "expected none with text"),
        (["--objective", "supcon", "--text", "x"], "--text: expected objective simcse or pairs"),
        (["--objective", "pairs", "--text", "x"], "--text-column: expected two"),
        (
            ["--objective", "simcse", "--text", "x", "--text-column", "a", "b"],
            "--text-column: expected one",
        ),
        (
            ["--objective", "pairs", "--text", "x", "--text-column", "a", "a"],
            "--text-column: expected two",
        ),
        (["--objective", "simcse", "--text-column", "x"], "--text-column: expected text, f"),
        (["--objective", "pairs", "--margin", "1"], "--margin: expected objective triplet"),
        (["--objective", "triplet", "--contrast-temperature", "1"], "expected objective simcse or"),
        (["--objective", "simcse", "--head-lr", "1"], "--head-lr: expected projection"),
        (["--objective", "pairs", "--batch-size", "1"], "--batch-size: expected 2 or more"),
        (["--objective", "simcse", "--freeze-encoder"], "mode pretrain: expected neither"),
        (["--objective", "simcse", "--sst-head", "hidden"], "unrecognized arguments: --sst-head"),
    ],
)
def test_what_makes_no_sense_is_refused(argv, expected, refused):
    assert expected in refused(2, *TINY, *argv)


def test_a_file_that_is_not_there_is_named(refused, tmp_path):
    file = tmp_path / "none.csv"
    found = refused(1, *TINY, "--objective", "nli", "--nli", file, "--output", tmp_path / "run")
    assert f"{file}: expected a data file, found no {file}" in found
    flags = ("--objective", "simcse", "--text", file, "--text-column", "a")
    assert f"{file}: expected a data file" in refused(1, *TINY, *flags)


@pytest.mark.parametrize("objective", ["simcse", "nli", "pairs", "ranking", "triplet"])
def test_every_objective_trains_in_pieces_and_is_selected_on_sts_dev(run, tmp_path, objective):
    folder = tmp_path / "run"
    flags = [*TINY, *SHORT, "--objective", objective, "--micro-batch", "6", "--projection"]
    if objective == "nli":
        (tmp_path / "nli.csv").write_text(NLI)
        flags += ["--nli", str(tmp_path / "nli.csv")]
    found = run(*flags, "--output", str(folder))
    assert found.returncode == 0, found.stderr
    for task in ("sst", "qqp", "sts"):
        assert f"sentences of {task} that the training text contains: " in found.stdout
    metrics = json.loads((folder / "metrics.json").read_text())
    dev, before = metrics["dev"][objective], metrics["before"][objective]
    assert dev.keys() == before.keys() == {"spearman", "pearson", "alignment", "uniformity"}
    assert dev != before
    assert list((folder / "predictions").iterdir()) == []
    assert (folder / "checkpoint" / "best").exists()


@pytest.mark.parametrize("limit", [[], ["--limit", "12"]])
def test_simcse_on_text_of_ones_own(run, tmp_path, limit):
    file, folder = tmp_path / "own.csv", tmp_path / "run"
    file.write_text("id,said\n" + "".join(f"{i},Sentence {i % 20}.\n" for i in range(30)))
    flags = [*TINY, "--objective", "simcse", "--text", str(file), "--text-column", "said", *limit]
    found = run(*flags, "--batch-size", "4", "--keep", "last", "--output", str(folder))
    assert found.returncode == 0, found.stderr
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["steps"] == (3 if limit else 5), "each sentence comes once"
    config = json.loads((folder / "config.json").read_text())
    assert (config["text"], config["text_column"], config["tasks"]) == (str(file), "said", [])
    after = run("--mode", "single", "--task", "sst", "--init", str(folder), *SHORT, "--epochs", "1",
                "--output", str(tmp_path / "after"))  # fmt: skip
    assert after.returncode == 0, after.stderr
    compared = run("--mode", "compare", "--runs", str(folder), "--output", str(tmp_path / "page"))
    assert "expected a run of tasks, found one of mode pretrain" in compared.stderr


@pytest.mark.parametrize("objective", ["pairs", "ranking", "triplet"])
def test_pairs_of_ones_own(run, tmp_path, objective):
    file, folder = tmp_path / "own.tsv", tmp_path / "run"
    file.write_text("q\ta\n" + "".join(f"Question {i}?\tAnswer {i}.\n" for i in range(20)))
    flags = (*TINY, "--objective", objective, "--text", file, "--text-column", "q", "a")
    found = run(*flags, "--batch-size", "4", "--output", str(folder))
    assert found.returncode == 0, found.stderr
    assert json.loads((folder / "metrics.json").read_text())["steps"] == 5
    config = json.loads((folder / "config.json").read_text())
    assert (config["text_column"], config["other_column"]) == ("q", "a")


def test_another_run_starts_from_it(run, tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    flags = (*SHORT, "--output")
    assert run(*TINY, "--objective", "simcse", *flags, str(before)).returncode == 0
    single = ("--mode", "single", "--task", "sts", "--init", str(before), "--epochs", "1")
    found = run(*single, *flags, str(after))
    assert found.returncode == 0, found.stderr
    assert "heads initialised from" in found.stdout


def test_the_defaults_are_those_of_simcse(run, tmp_path):
    folder = tmp_path / "run"
    flags = ("--objective", "simcse", "--limit", "20", "--output", str(folder))
    assert run(*TINY, *flags).returncode == 0
    config = json.loads((folder / "config.json").read_text())
    assert (config["batch_size"], config["epochs"], config["lr"]) == (64, 1, 3e-5)
    found = run("--mode", "pretrain", "--help").stdout
    assert "examples per batch (default: 64)" in found


@pytest.mark.parametrize("tasks", [[], ["--tasks", "sst"]])
def test_a_dry_run_counts_the_objective(run, tmp_path, monkeypatch, tasks):
    monkeypatch.chdir(tmp_path)
    found = run(*TINY, "--objective", "simcse", "--limit", "20", *tasks, "--dry-run")
    assert found.returncode == 0, found.stderr
    assert [line.split()[1] for line in found.stdout.splitlines() if line.startswith("1 ")] == [
        "simcse"
    ]
    assert list(tmp_path.iterdir()) == []
