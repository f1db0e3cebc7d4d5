"""--mode pretrain on classes, --mode probe and --mode bilstm: runs, and what is refused."""

import json

import pytest

PRETRAIN = ("--mode", "pretrain", "--encoder", "tiny")
SUPER = (*PRETRAIN, "--objective", "superloss")
SHORT = ("--limit", "60", "--batch-size", "20")
PROBE = ("--mode", "probe", "--task", "sst")
BILSTM = ("--mode", "bilstm", "--tasks", "sst")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((*SUPER, "--tasks", "sts"), "--objective superloss: expected tasks with classes"),
        ((*SUPER, "--tasks", "qqp"), "superloss: expected single texts or pair joint, found qqp"),
        ((*SUPER, "--tasks", "rte"), "superloss: expected single texts or pair joint, found rte"),
        (
            (*SUPER, "--hard-top-k", "3", "--hard-threshold", "0"),
            "--hard-top-k and --hard-threshold: expe",
        ),
        ((*SUPER, "--hard-after", "1"), "--hard-after: expected --hard-top-k, --hard-threshold"),
        (
            (*SUPER, "--hard-top-k", "2", "--hard-after", "3", "--epochs", "3"),
            "--hard-after: expected fewer than epochs 3, found 3",
        ),
        (
            (*PRETRAIN, "--objective", "simcse", "--tasks", "trec", "--classes", "2"),
            "--classes: expected an objective of classes, found simcse",
        ),
        ((*PROBE, "--pair", "joint"), "--pair: expected qqp or mrpc"),
        ((*BILSTM, "--output", "x", "--max-tokens", "2"), "--max-tokens: expected a whole number"),
        ((*SUPER, "--projection"), "--projection: expected objective simcse or nli or"),
        ((*SUPER, "--head-lr", "1"), "--head-lr: expected projection or --projection-head"),
        ((*SUPER, "--margin", "1"), "--margin: expected objective triplet or class-triplet"),
        ((*SUPER, "--hard-top-fraction", "0"), "--hard-top-fraction: expected a number above 0"),
        (
            (*PRETRAIN, "--objective", "supcon", "--positives", "3"),
            "--positives: expected objective superloss, found 3",
        ),
        (
            (*PRETRAIN, "--objective", "npair", "--contrast-temperature", "1"),
            "--contrast-temperature: expected objective simcse or nli or pairs",
        ),
        (
            (*PRETRAIN, "--objective", "simcse", "--projection-head", "linear"),
            "--projection-head: expected an objective of classes, found simcse",
        ),
        (
            (*PRETRAIN, "--objective", "simcse", "--drop-leaks"),
            "--drop-leaks: expected an objective of classes, found simcse",
        ),
        (("--mode", "probe", "--task", "sts"), "--task: expected a task with classes, found sts"),
        ((*PROBE, "--shots", "5"), "--shots: expected protocol few-shot"),
        ((*BILSTM, "--output", "x", "--vectors", "v", "--embedding-size", "3"), "one of them"),
    ],
)
def test_what_makes_no_sense_is_refused(argv, expected, refused):
    assert expected in refused(2, *argv)


@pytest.mark.parametrize("objective", ["superloss", "supcon", "class-triplet", "npair"])
def test_every_objective_trains_in_pieces_and_is_probed_and_tuned(run, tmp_path, objective):
    folder = tmp_path / "run"
    flags = [*PRETRAIN, *SHORT, "--objective", objective, "--micro-batch", "8"]
    found = run(*flags, "--projection-head", "nonlinear", "--output", str(folder))
    assert found.returncode == 0, found.stderr
    metrics = json.loads((folder / "metrics.json").read_text())
    name = f"sst-{objective}"
    assert metrics["dev"][name].keys() == metrics["before"][name].keys() == {"knn_accuracy"}
    probed = run(*PROBE, *SHORT[:2], "--init", str(folder), "--output", str(tmp_path / "probe"))
    assert probed.returncode == 0, probed.stderr
    assert "logistic regression with C = " in probed.stdout
    tuned = ("--mode", "single", "--task", "sst", *SHORT, "--epochs", "1", "--init", str(folder))
    found = run(*tuned, "--output", str(tmp_path / "tuned"))
    assert found.returncode == 0, found.stderr
    assert "heads initialised from" in found.stdout
    runs = [str(tmp_path / name) for name in ("probe", "tuned")]
    compared = run("--mode", "compare", "--runs", *runs, "--output", str(tmp_path / "page"))
    assert compared.returncode == 0, compared.stderr


def test_hard_negatives_and_counts_reach_the_run(run, tmp_path):
    folder = tmp_path / "run"
    flags = ("--hard-top-k", "3", "--hard-after", "1", "--epochs", "2", "--positives", "2")
    found = run(*SUPER, *SHORT, *flags, "--negatives", "8", "--output", str(folder))
    assert found.returncode == 0, found.stderr
    config = json.loads((folder / "config.json").read_text())
    hard = {key: value for key, value in config.items() if key.startswith("hard_") and value}
    assert hard == {"hard_top_k": 3, "hard_after": 1}
    assert (config["positives"], config["negatives"]) == (2, 8)
    assert config["per_class"]


def test_batches_too_small_for_the_classes_are_refused(refused, tmp_path):
    found = refused(1, *SUPER, "--batch-size", "9", "--output", tmp_path / "run")
    assert "--batch-size: expected 10 or more for the 5 classes of sst" in found


def test_one_class_teaches_nothing(refused, tmp_path):
    (tmp_path / "SST-2").mkdir()
    for file in ("train.tsv", "dev.tsv"):
        rows = "".join(f"text {i}\t1\n" for i in range(8))
        (tmp_path / "SST-2" / file).write_text(f"sentence\tlabel\n{rows}")
    flags = ("--tasks", "sst2", "--data", tmp_path, "--output", tmp_path / "run")
    assert "expected training examples of two classes" in refused(1, *SUPER, *flags)


def test_a_bilstm_may_be_written_into_the_folder_one_is_in(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*BILSTM, "--units", "4", "--limit", "20", "--output", ".").returncode == 0
    assert (tmp_path / "tokenizer.json").exists()


def test_a_users_folder_beside_a_bilstm_stays(run, tmp_path):
    (tmp_path / "words.tmp").mkdir()
    (tmp_path / "words.tmp" / "mine").write_text("mine")
    flags = ("--limit", "9", "--embedding-size", "8", "--units", "4")
    assert run(*BILSTM, *flags, "--output", tmp_path / "words").returncode == 0
    assert [one.name for one in (tmp_path / "words.tmp").iterdir()] == ["mine"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["words", "words.tmp"]


def test_a_bilstm_is_built_and_trained(run, refused, tmp_path):
    folder, vectors = tmp_path / "words", tmp_path / "vectors.txt"
    vectors.write_text("the 1 0 0\nfilm 0 1 0\nand 0 0 1\n")
    flags = ("--vectors", str(vectors), "--units", "8", "--limit", "60", "--output", str(folder))
    found = run(*BILSTM, *flags)
    assert found.returncode == 0, found.stderr
    assert "of them with a vector, 1 x 8 units" in found.stdout
    assert "--output: expected a new or empty folder" in refused(2, *BILSTM, *flags)
    train = ("--mode", "pretrain", "--objective", "superloss", "--encoder", str(folder), *SHORT)
    found = run(*train, "--lr", "0.003", "--output", str(tmp_path / "run"))
    assert found.returncode == 0, found.stderr


def test_a_folder_of_another_run_is_left_alone(run, refused, finished, tmp_path):
    folder, _ = finished
    flags = (*PROBE, "--limit", "60", "--init", str(folder))
    assert "expected another --output than a member's" in refused(1, *flags, "--output", folder)
    place = ("--output", str(tmp_path / "probe"))
    assert run(*flags, *place).returncode == 0
    assert "expected this probe or nothing" in refused(
        1, *PROBE, "--limit", "50", "--encoder", "tiny", *place
    )
