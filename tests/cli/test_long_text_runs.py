"""Long texts in runs: training, prediction, embedding, export, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from run_files import metrics
from tolerances import assert_near, encoder_terms

import cli
from common.errors import SettingsError, TruncationWarning
from minbert import BiEncoder
from serving import MultiTaskModel

pytestmark = pytest.mark.filterwarnings("ignore::common.errors.TruncationWarning")

LONG = "we were there for a week and it rained every day " * 3
ROWS = [
    (f"{LONG if i % 3 else ''}the end was {word} {i}", word) for i in range(12) for word in "ab"
]
TASK = "notes={}:type=classification,text=note,label=y"
MODES = ("head-tail", "chunks")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Runs of the same task by what is read of its long texts; read only."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "notes.csv").write_text("note,y\n" + "".join(f"{t},{y}\n" for t, y in ROWS))
    for long in MODES:
        command = ("--mode", "single", "--task", TASK.format(folder / "notes.csv"))
        command = (*command, "--encoder", "tiny", "--epochs", "1", "--max-tokens", "16")
        command = (*command, "--batch-size", "8", "--smart-weight", "1")
        assert cli.main([*command, "--long", long, "--output", str(folder / long)]) == 0
    return folder


@pytest.fixture(params=MODES)
def run_of(request, trained):
    return trained / request.param


def scores_of(run, name):
    with np.load(run / "predictions" / f"notes-{name}-probabilities.npz") as found:
        return dict(zip(found["ids"].tolist(), found["probabilities"], strict=True))


def test_new_texts_are_read_as_in_training(run_of, trained):
    config = json.loads((run_of / "config.json").read_text())
    assert (config["long"], config["max_tokens"]) == (run_of.name, 16)
    model = MultiTaskModel.load(run_of)
    tokenizer = model.model.bi_encoder.tokenizer
    assert (tokenizer.long, tokenizer.max_tokens) == (run_of.name, 16)
    expected = scores_of(run_of, "dev")
    found = model.predict([ROWS[int(one) - 1][0] for one in expected])["notes"]
    terms = encoder_terms(model.model.encoder.config, 100)
    assert_near(found.probabilities, np.stack(list(expected.values())), terms)
    assert found.cut.any() == (run_of.name == "head-tail")
    assert bool(metrics(run_of)["cut_texts"]["notes"][0]) == (run_of.name == "head-tail")


def test_a_line_names_a_long_setting_that_differs_from_that_of_init(trained, tmp_path, run_ok):
    short = ("--mode", "single", "--task", "sst", "--limit", "16", "--epochs", "1")
    second = (*short, "--init", trained / "chunks", "--output", tmp_path / "second")
    line = f"{trained / 'chunks'} was trained with long chunks, this run reads long texts with long"
    assert f"{line} head\n" in run_ok(*second).stdout
    assert line not in run_ok(*second, "--long", "chunks", "--overwrite").stdout


def test_reading_has_only_max_tokens_and_long(trained):
    assert MultiTaskModel.load(trained / "chunks", reading={"long": "head"}) is not None
    with pytest.raises(SettingsError, match="reading: expected only max_tokens and long, found ep"):
        MultiTaskModel.load(trained / "chunks", reading={"epochs": 3})


@pytest.mark.parametrize("flag", [(), ("--long", "head"), ("--max-tokens", "100")])
def test_encode_and_predict_read_as_the_run_or_as_asked(run_of, cwd, run_ok, flag):
    texts = [text for text, _ in ROWS[:4]]
    Path("texts.txt").write_text("\n".join(texts) + "\n")
    run_ok("--mode", "encode", "--run", run_of, "--input", "texts.txt", "--output", "a.npy", *flag)
    long = run_of.name if "--long" not in flag else "head"
    limit = 16 if "--max-tokens" not in flag else 100
    weights = run_of / "checkpoint" / "best"
    plain = BiEncoder.from_pretrained(weights, max_tokens=limit, long=long)
    cut = limit == 16 and long != "chunks"
    with pytest.warns(TruncationWarning) if cut else np.errstate():
        expected = plain.encode(texts, normalize=False)
    assert_near(np.load("a.npy"), expected, encoder_terms(plain.encoder.config, 100))
    result = run_ok("--mode", "predict", "--run", run_of, "--input", "texts.txt", *flag)
    assert ("2 of 4 rows are longer than 16 tokens and were cut" in result.stderr) == cut


def test_an_export_says_that_other_libraries_cut(run_of, tmp_path, run_ok):
    run_ok("--mode", "export", "--run", run_of, "--output", tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    assert "Of texts longer than 16 tokens, this toolkit reads" in text
    read = {"head-tail": "their head and tail", "chunks": "them in chunks of 16 tokens"}
    assert f"{read[run_of.name]}. Other libraries cut them" in text
    model, exported = MultiTaskModel.load(run_of), MultiTaskModel.load(tmp_path / "out")
    texts = [ROWS[3][0]]
    found = [one.predict(texts)["notes"].probabilities for one in (model, exported)]
    np.testing.assert_array_equal(*found)


def test_training_counts_texts_in_chunks(trained, cwd, run_ok):
    command = (
        "--mode",
        "single",
        "--task",
        TASK.format(trained / "notes.csv"),
        "--encoder",
        "tiny",
    )
    command = (*command, "--epochs", "1", "--max-tokens", "12", "--long")
    printed = run_ok(*command, "chunks", "--output", "a").stdout
    assert "train texts are longer than 12 tokens and read in chunks" in printed
    printed = run_ok(*command, "head-tail", "--output", "b").stdout
    assert "train texts are longer than 12 tokens and were cut" in printed


@pytest.mark.parametrize(
    ("flags", "status", "expected"),
    [
        ("--max-tokens 2", 2, "--max-tokens: expected a whole number from 3"),
        (
            "--max-tokens 9999",
            1,
            "max_tokens: expected a whole number from 3 to 128, the longest text of tiny",
        ),
        ("--long tail", 2, "--long: expected one of head, head-tail, chunks"),
        (
            "--task sts --pair joint --long chunks",
            2,
            "expected head for pairs in one sequence (sts)",
        ),
    ],
)
def test_wrong_limits_are_refused(cwd, error_line, flags, status, expected):
    task = () if "--task" in flags else ("--task", "sst")
    command = ("--mode", "single", *task, "--encoder", "tiny", "--epochs", "1")
    assert expected in error_line(status, *command, *flags.split(), "--output", "out")


def test_a_run_of_pairs_in_one_sequence_is_read_only_by_its_head(cwd, run_ok, error_line):
    command = ("--mode", "single", "--task", "sts", "--pair", "joint", "--encoder", "tiny")
    run_ok(*command, "--epochs", "1", "--limit", "20", "--output", "joint")
    Path("pairs.csv").write_text("a,b\nx,y\n")
    given = ("--mode", "predict", "--run", "joint", "--input", "pairs.csv", "--column", "a", "b")
    run_ok(*given, "--max-tokens", "20")
    assert "expected head for pairs in one sequence" in error_line(1, *given, "--long", "chunks")
