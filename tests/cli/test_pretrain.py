"""--mode pretrain: every objective, what is refused, and a later run that starts from it."""

import json

import pytest

TINY = ("--mode", "pretrain", "--encoder", "tiny")
SHORT = ("--limit", "40", "--batch-size", "16")
NLI = "sent0,sent1,hard_neg\n" + "".join(f"a man {i},a person {i},a dog {i}\n" for i in range(30))


def test_a_file_that_is_not_there_is_named(refused, tmp_path):
    file = tmp_path / "none.csv"
    found = refused(1, *TINY, "--objective", "nli", "--nli", file, "--output", tmp_path / "run")
    assert f"{file}: expected a data file, found no {file}" in found
    flags = ("--objective", "simcse", "--text", file, "--text-column", "a")
    assert f"{file}: expected a data file" in refused(1, *TINY, *flags)


@pytest.mark.parametrize("objective", ["nli", "pairs", "triplet"])
def test_every_objective_trains_in_pieces_and_is_selected_on_sts_dev(ran, tmp_path, objective):
    folder = tmp_path / "run"
    flags = [*TINY, *SHORT, "--objective", objective, "--micro-batch", "6", "--projection"]
    if objective == "nli":
        (tmp_path / "nli.csv").write_text(NLI)
        flags += ["--nli", str(tmp_path / "nli.csv")]
    found = ran(*flags, "--output", str(folder))
    for task in ("sst", "qqp", "sts"):
        assert f"sentences of {task} that the training text contains: " in found.stdout
    metrics = json.loads((folder / "metrics.json").read_text())
    dev, before = metrics["dev"][objective], metrics["before"][objective]
    assert dev.keys() == before.keys() == {"spearman", "pearson", "alignment", "uniformity"}
    assert dev != before
    assert list((folder / "predictions").iterdir()) == []
    assert (folder / "checkpoint" / "best").exists()


@pytest.mark.parametrize("limit", [[], ["--limit", "12"]])
def test_simcse_on_text_of_ones_own(run, ran, tmp_path, limit):
    file, folder = tmp_path / "own.csv", tmp_path / "run"
    file.write_text("id,said\n" + "".join(f"{i},Sentence {i % 20}.\n" for i in range(30)))
    flags = [*TINY, "--objective", "simcse", "--text", str(file), "--text-column", "said", *limit]
    ran(*flags, "--batch-size", "4", "--keep", "last", "--output", str(folder))
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["steps"] == (3 if limit else 5), "each sentence comes once"
    config = json.loads((folder / "config.json").read_text())
    assert (config["text"], config["text_column"], config["tasks"]) == (str(file), "said", [])
    tuned = ("--mode", "single", "--task", "sst", "--init", str(folder), "--epochs", "1")
    after = run(*tuned, *SHORT, "--output", str(tmp_path / "after"))
    assert f"heads initialised from {folder}: none" in after.stdout
    compared = run("--mode", "compare", "--runs", str(folder), "--output", str(tmp_path / "page"))
    assert "expected a run of tasks, found one of mode pretrain" in compared.stderr


def test_pairs_of_ones_own(ran, tmp_path):
    file, folder = tmp_path / "own.tsv", tmp_path / "run"
    file.write_text("q\ta\n" + "".join(f"Question {i}?\tAnswer {i}.\n" for i in range(20)))
    flags = (*TINY, "--objective", "ranking", "--text", file, "--text-column", "q", "a")
    ran(*flags, "--batch-size", "4", "--output", folder)
    assert json.loads((folder / "metrics.json").read_text())["steps"] == 5
    config = json.loads((folder / "config.json").read_text())
    assert (config["text_column"], config["other_column"]) == ("q", "a")


def test_the_defaults_are_those_of_simcse(run, tmp_path):
    folder = tmp_path / "run"
    flags = ("--objective", "simcse", "--limit", "20", "--output", str(folder))
    assert run(*TINY, *flags).returncode == 0
    config = json.loads((folder / "config.json").read_text())
    assert (config["batch_size"], config["epochs"], config["lr"]) == (64, 1, 3e-5)
    found = run("--mode", "pretrain", "--help").stdout
    assert "examples per batch (default: 64)" in found


def test_a_dry_run_counts_the_objective(ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = ran(*TINY, "--objective", "simcse", "--limit", "20", "--dry-run")
    rows = [line.split() for line in found.stdout.splitlines() if line.startswith("1 ")]
    assert [row[1] for row in rows] == ["simcse"]
    assert list(tmp_path.iterdir()) == []
