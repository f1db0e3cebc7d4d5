"""Modes similar and mine with many queries and a first pass; encode in the formats of engines."""

import csv
import io
import json
import re

import faiss
import numpy as np
import pytest

from cli import mine as mine_mode
from minbert import BiEncoder

TINY = ("--encoder", "tiny")
SENTENCES = [f"sentence {i % 90} of a file {'word ' * (i % 7)}" for i in range(120)] + [" "]
RECALL = r"recall of the first pass: [01]\.\d{3} on 100 queries"


@pytest.fixture
def corpus(run_ok, cwd):
    """Sentences, the last of which is empty, with their embeddings."""
    (cwd / "s.txt").write_text("\n".join(SENTENCES) + "\n")
    run_ok("--mode", "encode", *TINY, "--input", "s.txt", "--output", "s.npy")
    return ("--input", "s.txt", "--embedded", "s.npy")


@pytest.mark.parametrize("search", ["int8", "binary"])
def test_a_first_pass_finds_what_the_exact_search_finds(search, corpus, run_ok, cwd):
    similar = ("--mode", "similar", *TINY, "--query", "sentence 7 of a file", "--top", "5")
    exact = run_ok(*similar, *corpus).stdout.splitlines()
    assert len(exact) == 7
    for given in (corpus, corpus, corpus[:2]):  # the second time with the kept index
        result = run_ok(*similar, *given, "--search", search, "--rescore", "100")
        lines = result.stdout.splitlines()
        assert lines[:-1] == exact
        assert re.fullmatch(RECALL, lines[-1])
        assert "made anew" not in result.stderr
    assert sorted(path.name for path in cwd.glob("s.*")) == ["s.npy", f"s.npy.{search}", "s.txt"]
    run_ok("--mode", "encode", *TINY, *corpus[:2], "--output", "s.npy", "--overwrite")
    again = run_ok(*similar, *corpus, "--search", search, "--rescore", "100")
    assert f"s.npy.{search}: index of another s.npy or other texts; rebuilding it" in again.stderr
    assert again.stdout.splitlines()[:-1] == exact


@pytest.mark.parametrize("change", ["texts", "pooling"])
def test_an_array_of_other_texts_or_another_encoder_is_refused(change, corpus, error_line, cwd):
    encoder = ("--encoder", "minilm")
    rows = BiEncoder.from_pretrained("minilm").encode(SENTENCES[:9])
    np.save(cwd / "s.npy", rows)
    texts = SENTENCES[:9] if change == "pooling" else SENTENCES[8::-1]
    (cwd / "s.txt").write_text("\n".join(texts) + "\n")
    more = ("--pooling", "cls") if change == "pooling" else ()
    found = error_line(1, "--mode", "similar", *encoder, *corpus, *more, "--query", "a sentence")
    assert "s.npy: expected the embeddings of s.txt by this encoder, found another in row" in found


def test_many_queries_are_a_table_or_a_file(corpus, run_ok, cwd):
    wanted = ["sentence 7 of a file", "", 'a "word", word']
    (cwd / "q.txt").write_text("\n".join(wanted) + "\n")
    (cwd / "q.jsonl").write_text("".join(json.dumps({"q": text}) + "\n" for text in wanted))
    similar = ("--mode", "similar", *TINY, *corpus, "--top", "3")
    result = run_ok(*similar, "--queries", "q.txt")
    assert "1 of 3 rows have an empty text, and are not searched for" in result.stderr
    header, _, *lines = result.stdout.splitlines()
    assert header.split() == ["query", "cosine", "row", "sentence"]
    assert len(lines) == 6
    queries = ("--queries", "q.jsonl", "--queries-column", "q")
    for ending in ("csv", "tsv", "jsonl"):
        shown = run_ok(*similar, *queries, "--output", f"found.{ending}").stdout
        assert shown == f"6 results of 2 queries: found.{ending}\n"
    found = [json.loads(line) for line in (cwd / "found.jsonl").read_text().splitlines()]
    assert [one["query"] for one in found] == [wanted[0]] * 3 + [wanted[2]] * 3
    for one, line in zip(found, lines, strict=True):
        assert one["text"] == SENTENCES[one["row"] - 1]
        assert f"{one['cosine']:.4f}" in line
    for ending, separator in (("csv", ","), ("tsv", "\t")):
        text = (cwd / f"found.{ending}").read_text()
        table = list(csv.DictReader(io.StringIO(text), delimiter=separator))
        assert table == [{key: str(value) for key, value in one.items()} for one in found]


def test_mining_by_int8_finds_the_same_pairs(corpus, run_ok, monkeypatch):
    mine = ("--mode", "mine", *TINY, "--top", "7000", "--threshold", "0.1")
    exact = run_ok(*mine, *corpus)
    assert "of 7,140 pairs in" in exact.stderr
    monkeypatch.setattr(mine_mode, "LONG", 0.0)
    for given in (corpus, corpus[:2]):
        result = run_ok(*mine, *given, "--search", "int8")
        both = [
            {tuple(row[1:]): float(row[0]) for row in csv.reader(io.StringIO(text), delimiter="\t")}
            for text in (exact.stdout.partition("\n")[2], result.stdout.partition("\n")[2])
        ]
        assert len(both[0]) > 100
        assert both[0] == pytest.approx(both[1], abs=1.01e-4)  # of four digits
        assert re.search(r"7,140 pairs: about \S+ \w+ \(int8\)", result.stderr)


@pytest.mark.parametrize(
    ("status", "argv", "expected"),
    [
        (2, "similar --query x --queries q.txt", "not allowed with argument"),
        (2, "similar", "one of the arguments --query --queries is required"),
        (2, "similar --query x --queries-column q", "--queries-column: expected --queries FILE"),
        (2, "similar --query x --rescore 2", "--rescore: expected --search int8 or binary, found"),
        (2, "similar --query x --search pq", "invalid choice: 'pq'"),
        (2, "similar --query x --output found.txt", "ends in .csv or .tsv or .jsonl"),
        (1, "similar --query x --output s.csv", "s.csv: found an existing file; --overwrite"),
        (
            1,
            "similar --queries s.csv --queries-column q --output s.csv --overwrite",
            "expected another --output than the --queries",
        ),
        (
            1,
            "encode --embedded s.npy --format pgvector --output b.sql --overwrite --input b.copy",
            "b.copy: expected another --output, which does not replace an input",
        ),
        (1, "similar --queries blank.txt", "blank.txt: expected at least one sentence"),
        (2, "mine --search binary", "invalid choice: 'binary'"),
        (2, "encode --format faiss --output a.faiss", "expected --embedded FILE.npy, an array"),
        (2, "encode --format npy --output a.npy --embedded s.npy", "--embedded: expected --format"),
        (2, "encode --embedded s.npy --format qdrant --output a.json", "ends in .jsonl, found a."),
        (
            2,
            "encode --embedded s.npy --format qdrant --output a.jsonl --faiss-index Flat",
            "--faiss-index: expected --format faiss, found qdrant",
        ),
        (
            2,
            "encode --embedded s.npy --format faiss --output a.faiss --faiss-index None",
            "--faiss-index: expected a kind of index of faiss.index_factory",
        ),
        (
            2,
            "encode --embedded s.npy --format faiss --output a.faiss --no-normalize",
            "--normalize: expected --format npy, found faiss",
        ),
        (1, "encode --embedded s.npy --format pgvector --output b.sql", "b.copy: found an existi"),
        (1, "encode --embedded few.npy --format qdrant --output a.jsonl", "expected 121 x 32"),
    ],
)
def test_flags_that_contradict_are_refused(status, argv, expected, cwd, error_line):
    (cwd / "s.txt").write_text("a sentence\n" * 121)
    (cwd / "blank.txt").write_text("\n \n")
    for name in ("s.csv", "b.copy"):
        (cwd / name).write_text("mine")
    array = BiEncoder.from_pretrained("tiny").encode(["a sentence"] * 121)
    np.save(cwd / "s.npy", array)
    np.save(cwd / "few.npy", array[:9])
    mode, *rest = argv.split()
    assert expected in error_line(status, "--mode", mode, *TINY, "--input", "s.txt", *rest)
    names = ["b.copy", "blank.txt", "few.npy", "s.csv", "s.npy", "s.txt"]
    assert sorted(path.name for path in cwd.iterdir()) == names


def test_files_for_engines_have_the_sentences_that_are_searched(corpus, run_ok, cwd):
    for name, file in (("faiss", "s.faiss"), ("qdrant", "s.jsonl"), ("pgvector", "s.sql")):
        result = run_ok("--mode", "encode", *TINY, *corpus, "--format", name, "--output", file)
        assert result.stdout == f"120 x 32, {name}: {file}\n"
        assert "1 of 121 rows have an empty text, and are left out" in result.stderr
    assert faiss.read_index("s.faiss").ntotal == 120
    points = [json.loads(line) for line in (cwd / "s.jsonl").read_text().splitlines()]
    assert [one["payload"]["text"] for one in points] == SENTENCES[:-1]
    assert (cwd / "s.copy").stat().st_size > 120 * 32 * 4


def test_an_array_of_other_sentences_is_refused(corpus, cwd, run):
    (cwd / "s.txt").write_text("another sentence\n" * 120 + " \n")
    files = (*TINY, *corpus, "--format", "qdrant", "--output", "s.jsonl")
    line = run("--mode", "encode", *files).stderr.splitlines()[-1]
    assert "expected the embeddings of s.txt by this encoder, found another in row" in line
    assert not (cwd / "s.jsonl").exists()
