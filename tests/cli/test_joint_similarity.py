"""Similarities of pairs in one sequence: every mode that reads such a run."""

import numpy as np
import pytest
from run_files import metrics, predictions

import cli
from serving import MultiTaskModel
from tasks.predictions import read_scores

FEW = ("--limit", "24")
SMALL = ("--encoder", "tiny", "--epochs", "1", "--batch-size", "8", *FEW)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """40 pairs with similarities from 1 to 7."""
    file = tmp_path_factory.mktemp("own") / "own.csv"
    rows = [f"text {i},other {i % 7},{1 + i % 7}" for i in range(40)]
    file.write_text("\n".join(["a,b,y", *rows]) + "\n")
    return f"own={file}:type=similarity,text=a,text=b,label=y,pair=joint"


@pytest.fixture(scope="module")
def joint(own, tmp_path_factory):
    """A run of two tasks of joint pairs, with SMART; read only."""
    folder = tmp_path_factory.mktemp("joint") / "run"
    command = ("--mode", "multitask", "--tasks", "sts", "--pair", "joint", "--task", own, *SMALL)
    assert cli.main([*command, "--smart-weight", "1", "--output", str(folder)]) == 0
    return folder


def test_prediction_files_have_values_on_the_scale(joint):
    for stem, low, high in (("sts", 0, 5), ("own", 1, 7)):
        values = np.array([float(value) for _, value in predictions(joint, stem, "dev")])
        assert ((values >= low) & (values <= high)).all()
        assert len(set(values)) > 1
    assert set(metrics(joint)["dev"]["sts"]) == {"pearson", "spearman"}


def test_the_order_of_the_texts_and_new_texts(joint):
    """A joint pair is not the same in the other order, unlike a pair of embeddings."""
    model = MultiTaskModel.load(joint)
    pairs = [("A cat sleeps.", "The sun is up."), ("The sun is up.", "A cat sleeps.")]
    one, other = model.predict(pairs, ["sts"])["sts"].values
    assert one != other
    kept = read_scores(joint / "predictions" / "sts-dev-probabilities.npz")
    assert kept.values.shape == (len(kept.ids),)


def test_other_modes_read_the_run(joint, own, tmp_path, run_ok):
    other = tmp_path / "bi"
    run_ok("--mode", "single", "--task", "sts", *SMALL, "--output", other)
    again = tmp_path / "again"
    single = ("--mode", "single", "--task", "sts", "--pair", "joint", *SMALL, "--seed", "2")
    run_ok(*single, "--init", joint, "--output", again)
    runs = (f"joint={joint}", f"bi={other}")
    assert "sts pearson" in run_ok("--mode", "compare", "--runs", *runs).stdout
    run_ok("--mode", "ensemble", "--runs", again, other, "--output", tmp_path / "mean")
    run_ok("--mode", "evaluate", "--predictions", again, "--tasks", "sts")
    run_ok("--mode", "export", "--run", joint, "--output", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "The encoder was not trained to embed single texts." in card
    assert ".encode(" not in card
    pairs = [("A cat sleeps.", "The sun is up.")]
    exported, kept = (MultiTaskModel.load(one).predict(pairs) for one in (tmp_path / "out", joint))
    assert exported["own"].values == kept["own"].values


def test_its_encoder_is_not_used_for_single_texts(joint, tmp_path, error_line):
    (tmp_path / "s.txt").write_text("A cat.\nA dog.\n")
    command = ("--mode", "encode", "--input", tmp_path / "s.txt", "--output", tmp_path / "no.npy")
    line = "expected a run that embeds single texts, found only pairs in one sequence: sts, own"
    assert line in error_line(1, *command, "--run", joint)
