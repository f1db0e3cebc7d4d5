"""--mode pretrain on classes, --mode probe and --mode bilstm: runs, and what is refused."""

import json

import pytest

PRETRAIN = ("--mode", "pretrain", "--encoder", "tiny")
SUPER = (*PRETRAIN, "--objective", "superloss")
SHORT = ("--limit", "60", "--batch-size", "20")
PROBE = ("--mode", "probe", "--task", "sst")
BILSTM = ("--mode", "bilstm", "--tasks", "sst")


@pytest.mark.parametrize("objective", ["superloss", "npair"])
def test_every_objective_trains_in_pieces_and_is_probed_and_tuned(ran, tmp_path, objective):
    folder = tmp_path / "run"
    flags = [*PRETRAIN, *SHORT, "--objective", objective, "--micro-batch", "8"]
    ran(*flags, "--projection-head", "nonlinear", "--output", str(folder))
    metrics = json.loads((folder / "metrics.json").read_text())
    name = f"sst-{objective}"
    assert metrics["dev"][name].keys() == metrics["before"][name].keys() == {"knn_accuracy"}
    probed = ran(*PROBE, *SHORT[:2], "--init", str(folder), "--output", str(tmp_path / "probe"))
    assert "logistic regression with C = " in probed.stdout
    tuned = ("--mode", "single", "--task", "sst", *SHORT, "--epochs", "1", "--init", str(folder))
    found = ran(*tuned, "--output", str(tmp_path / "tuned"))
    assert "heads initialised from" in found.stdout
    runs = [str(tmp_path / name) for name in ("probe", "tuned")]
    ran("--mode", "compare", "--runs", *runs, "--output", str(tmp_path / "page"))


def test_batches_too_small_for_the_classes_and_one_class_are_refused(refused, tmp_path):
    output = ("--output", tmp_path / "run")
    found = refused(1, *SUPER, "--batch-size", "9", *output)
    assert "--batch-size: expected 10 or more for the 5 classes of sst" in found
    (tmp_path / "SST-2").mkdir()
    for file in ("train.tsv", "dev.tsv"):
        (tmp_path / "SST-2" / file).write_text("sentence\tlabel\n" + "text\t1\nother\t1\n" * 4)
    found = refused(1, *SUPER, "--tasks", "sst2", "--data", tmp_path, *output)
    assert "expected training examples of two classes" in found


def test_hard_negatives_and_counts_reach_the_run(ran, tmp_path):
    folder = tmp_path / "run"
    flags = ("--hard-top-k", "3", "--hard-after", "1", "--epochs", "2", "--positives", "2")
    ran(*SUPER, *SHORT, *flags, "--negatives", "8", "--output", str(folder))
    config = json.loads((folder / "config.json").read_text())
    hard = {key: value for key, value in config.items() if key.startswith("hard_") and value}
    assert hard == {"hard_top_k": 3, "hard_after": 1}
    assert (config["positives"], config["negatives"]) == (2, 8)
    assert config["per_class"]


def test_a_bilstm_may_be_written_into_the_folder_one_is_in_and_leaves_its_neighbours(
    run, tmp_path, monkeypatch
):
    words, mine = tmp_path / "words", tmp_path / "words.tmp" / "mine"
    for folder in (words, mine.parent):
        folder.mkdir()
    mine.write_text("mine")
    monkeypatch.chdir(words)
    flags = ("--limit", "20", "--embedding-size", "8", "--units", "4")
    assert run(*BILSTM, *flags, "--output", ".").returncode == 0
    assert (words / "tokenizer.json").exists()
    assert [one.name for one in mine.parent.iterdir()] == ["mine"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["words", "words.tmp"]


def test_a_bilstm_is_built_and_trained(ran, refused, tmp_path):
    folder, vectors = tmp_path / "words", tmp_path / "vectors.txt"
    vectors.write_text("the 1 0 0\nfilm 0 1 0\nand 0 0 1\n")
    flags = ("--vectors", str(vectors), "--units", "8", "--limit", "60", "--output", str(folder))
    found = ran(*BILSTM, *flags)
    assert "of them with a vector, 1 x 8 units" in found.stdout
    assert "--output: expected a new or empty folder" in refused(2, *BILSTM, *flags)
    train = ("--mode", "pretrain", "--objective", "superloss", "--encoder", str(folder), *SHORT)
    ran(*train, "--lr", "0.003", "--output", str(tmp_path / "run"))


def test_a_folder_of_another_run_is_left_unchanged(run, refused, finished, tmp_path):
    folder, _ = finished
    flags = (*PROBE, "--limit", "60", "--init", str(folder))
    assert "expected another --output than a member's" in refused(1, *flags, "--output", folder)
    place = ("--output", str(tmp_path / "probe"))
    assert run(*flags, *place).returncode == 0
    assert "expected this probe or nothing" in refused(
        1, *PROBE, "--limit", "50", "--encoder", "tiny", *place
    )
