"""2,000 fuzzed files: each is read, or refused in one line that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fuzzed_files import damaged, json_lines, sound_tables, tables, texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import UserError, is_unsafe
from common.files import read_json
from minbert import BiEncoder
from minbert.words import read_vectors
from pretrain.texts import read_nli_triplets
from reports.submissions import check_predictions
from tasks import build_task
from tasks.predictions import read_scores
from tasks.readers import Examples
from tasks.tables import read_sentences

EXAMPLES = 150  # of each reader: 14 x 150 = 2,100
TOKENIZER = BiEncoder.from_pretrained("tiny").tokenizer
fuzzed = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def read_or_refused(file: Path, content: bytes, read: Callable[[Path], object]) -> object:
    """Return what `read` returns, or None if it refuses the file in one line that names it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    try:
        return read(file)
    except UserError as error:
        message = str(error)
    assert not any(map(is_unsafe, message))
    assert len(message.splitlines()) == 1
    assert str(file) in message
    assert len(message) < 1100
    return None


def check(examples: Examples, columns: int) -> None:
    assert len(examples) == len(set(examples.ids)) > 0
    assert len(examples.texts) == columns
    for column in examples.texts:
        assert len(column) == len(examples)
        assert len(TOKENIZER(column)) == len(examples)
        assert "".join(column).encode("utf-8") is not None
    assert examples.targets is None or len(examples.targets) == len(examples)


TASKS = {
    "sst": ("id", "sentence", "sentiment"),
    "qqp": ("id", "sentence1", "sentence2", "is_duplicate"),
    "sts": ("id", "sentence1", "sentence2", "similarity"),
    "sst2": ("sentence", "label"),
    "qnli": ("question", "sentence", "label"),
    "yelp5": ("label", "text"),
}


@pytest.mark.parametrize("name", TASKS)
@fuzzed
@given(data=st.data())
def test_the_files_of_a_task(name, data, tmp_path):
    task = build_task(name)
    split = data.draw(st.sampled_from(sorted(task.source.splits)))
    file = Path(task.source.where(tmp_path, "train"))
    split = split if Path(task.source.where(tmp_path, split)) != file else "train"
    file = Path(task.source.where(tmp_path, split))
    found = read_or_refused(
        file,
        data.draw(sound_tables(TASKS[name]) | tables(TASKS[name])),
        lambda _: task.read(tmp_path, split),
    )
    if isinstance(found, Examples):
        check(found, len(found.texts))


@fuzzed
@given(content=json_lines(("sentence", "label")))
def test_json_lines_of_a_task(content, tmp_path):
    task = build_task("tnews")
    file = Path(task.source.where(tmp_path, "train"))
    found = read_or_refused(file, content, lambda _: task.read(tmp_path, "train"))
    assert found is None or isinstance(found, Examples)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".txt"])
@fuzzed
@given(data=st.data())
def test_sentences(ending, data, tmp_path):
    strategy = json_lines(("text",)) if ending == ".jsonl" else tables(("id", "text"))
    column = None if ending == ".txt" else "text"
    found = read_or_refused(
        tmp_path / f"sentences{ending}",
        data.draw(strategy),
        lambda file: list(read_sentences(file, column)),
    )
    if isinstance(found, list) and found:
        assert len(TOKENIZER(found)) == len(found)


@fuzzed
@given(content=tables(("sent0", "sent1", "hard_neg")) | tables(("premise", "hypothesis", "label")))
def test_entailments(content, tmp_path):
    read_or_refused(tmp_path / "nli.csv", content, read_nli_triplets)


@fuzzed
@given(data=st.data())
def test_leaderboard_files(data, tmp_path):
    rows = "".join(f"{i} , {data.draw(texts)} \n" for i in range(3))
    content = b"id \t Predicted_Sentiment \n" + rows.encode("utf-8", "surrogatepass")
    (tmp_path / "out.csv").write_bytes(data.draw(damaged(content)))
    output = build_task("sst").output
    assert output is not None
    checked = check_predictions(tmp_path / "out.csv", output, ["0", "1", "2"])
    assert (checked.values is None) == bool(checked.problems)
    assert all(len(line.splitlines()) == 1 for line in checked.problems)


@fuzzed
@given(data=st.data())
def test_json_numbers_and_arrays(data, tmp_path):
    content = data.draw(st.one_of(json_lines(("a",)), st.binary(max_size=50)))
    read_or_refused(tmp_path / "a.json", content, lambda file: read_json(file, UserError))
    read_or_refused(tmp_path / "a.npz", content, read_scores)
    read_or_refused(tmp_path / "a.txt", content, lambda file: read_vectors(file, ["word", "a"]))


@fuzzed
@given(data=st.data())
def test_archives_of_scores(data, tmp_path):
    """Real ones with a few bytes changed, and sound ones with arrays of another form."""
    ids = data.draw(st.sampled_from([np.array(["a", "b"]), np.array("a"), np.array([["a"]])]))
    values = st.sampled_from([np.ones((2, 3), np.float32), np.ones(2), np.float32(1), ids])
    arrays = {"ids": ids, "probabilities": data.draw(values), "targets": data.draw(values)}
    file = tmp_path / "a.npz"
    (np.savez_compressed if data.draw(st.booleans()) else np.savez)(file, **arrays)
    read_or_refused(file, data.draw(damaged(file.read_bytes())), read_scores)


def test_a_sentence_of_one_word_and_one_of_50000(tmp_path):
    long = " ".join(f"word{i % 97}" for i in range(50_000))
    rows = f"id\tsentence\tsentiment\n1\tgood\t4\n2\t{long}\t1\n"
    (tmp_path / "ids-sst-train.csv").write_text(rows)
    examples = build_task("sst").read(tmp_path, "train")
    assert [len(text.split()) for text in examples.texts[0]] == [1, 50_000]
    assert TOKENIZER(examples.texts[0]).lengths[1] == TOKENIZER.max_tokens
