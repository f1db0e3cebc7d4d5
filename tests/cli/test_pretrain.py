"""Modes pretrain and probe: what they train on, and the modes that use their results."""

import pytest
from run_files import config, metrics

PRETRAIN = ("--mode", "pretrain", "--encoder", "tiny")
SUPER = (*PRETRAIN, "--objective", "superloss")
SHORT = ("--limit", "60", "--batch-size", "20")
PROBE = ("--mode", "probe", "--task", "sst")
NLI = "sent0,sent1,hard_neg\n" + "".join(f"a man {i},a person {i},a dog {i}\n" for i in range(30))


@pytest.mark.parametrize("objective", ["nli", "pairs"])
def test_objectives_train_in_micro_batches_and_select_on_sts_dev(run_ok, tmp_path, objective):
    folder = tmp_path / "run"
    flags = ["--limit", "40", "--batch-size", "16", "--micro-batch", "6"]
    (tmp_path / "run.yaml").write_text(f"objective: {{name: {objective}, projection: true}}\n")
    flags += ["--config", tmp_path / "run.yaml"]
    if objective == "nli":
        (tmp_path / "nli.csv").write_text(NLI)
        flags += ["--nli", tmp_path / "nli.csv"]
    result = run_ok(*PRETRAIN, "--objective", objective, *flags, "--output", folder)
    for task in ("sst", "qqp", "sts"):
        assert f"sentences of {task} that the training text contains: " in result.stdout
    dev, before = metrics(folder)["dev"][objective], metrics(folder)["before"][objective]
    assert dev.keys() == before.keys() == {"spearman", "pearson", "alignment", "uniformity"}
    assert dev != before
    assert list((folder / "predictions").iterdir()) == []


def test_simcse_reads_distinct_sentences_of_a_file(run_ok, error_line, tmp_path):
    file, folder = tmp_path / "own.csv", tmp_path / "run"
    file.write_text("id,said\n" + "".join(f"{i},Sentence {i % 20}.\n" for i in range(30)))
    flags = ("--objective", "simcse", "--data-file", file, "--text", "said", "--limit", "12")
    run_ok(*PRETRAIN, *flags, "--batch-size", "4", "--keep", "last", "--output", folder)
    assert metrics(folder)["steps"] == 3
    stored = config(folder)
    assert (stored["objective"]["data_file"], stored["tasks"]) == (str(file), [])
    line = error_line(1, "--mode", "compare", "--runs", folder, "--output", tmp_path / "page")
    assert "a run of mode pretrain has no tasks" in line


def test_runs_on_classes_are_probed_fine_tuned_and_compared(run_ok, tmp_path):
    folder, probe, tuned = (tmp_path / name for name in ("run", "probe", "tuned"))
    (tmp_path / "run.yaml").write_text(
        "objective: {name: superloss, projection_head: nonlinear, hard_top_k: 3}\n"
    )
    flags = ("--micro-batch", "8", "--config", tmp_path / "run.yaml")
    run_ok(*SUPER, *SHORT, *flags, "--output", folder)
    name, stored = "sst-superloss", metrics(folder)
    assert stored["dev"][name].keys() == stored["before"][name].keys() == {"knn_accuracy"}
    result = run_ok(*PROBE, *SHORT[:2], "--init", folder, "--output", probe)
    assert "logistic regression with C = " in result.stdout
    single = ("--mode", "single", "--task", "sst", *SHORT, "--epochs", "1", "--init", folder)
    assert "starts with the encoder of" in run_ok(*single, "--output", tuned).stdout
    run_ok("--mode", "compare", "--runs", probe, tuned, "--output", tmp_path / "page")


def test_a_probe_keeps_the_folders_of_other_runs(run_ok, error_line, finished, tmp_path):
    folder, _ = finished
    flags, place = (*PROBE, "--limit", "60", "--init", folder), ("--output", tmp_path / "probe")
    line = error_line(1, *flags, "--output", folder)
    assert "this is the folder of a member" in line
    run_ok(*flags, *place)
    line = error_line(1, *PROBE, "--limit", "50", "--encoder", "tiny", *place)
    assert "holds a run with another limit" in line
