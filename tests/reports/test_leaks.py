"""Overlaps of sentences and pairs between what is trained on and what is held out."""

import pytest

from reports.leaks import audit, leak_table, text_set


@pytest.fixture
def folder(tmp_path):
    labelled = "\tid\tsentence1\tsentence2\tis_duplicate"
    for split, header, rows in (
        ("train", labelled, ["A cat .\ta dog\t1", "x\ty\t0", "One more\ttwo more\t0"]),
        ("dev", labelled, ["Y!\tx\t1", "new\ta CAT\t0"]),
        ("test-student", "\tid\tsentence1\tsentence2", ["new\tA cat", "fresh\tfine"]),
    ):
        lines = [f"{i}\t{split}{i}\t{row}" for i, row in enumerate(rows)]
        (tmp_path / f"quora-{split}.csv").write_text("\n".join([header, *lines, ""]))
    return tmp_path


def test_case_marks_and_the_order_of_a_pair_do_not_matter(folder):
    found, _ = audit(["qqp"], folder, {"texts": [["Fresh", "new"]]})
    (header, sentences), (_, pairs) = map(leak_table, found.values())
    assert header == ["held out", "distinct", "qqp train", "texts", "qqp dev"]
    assert sentences == [["qqp dev", "4", "3", "1", ""], ["qqp test", "4", "1", "2", "2"]]
    assert pairs == [["qqp dev", "2", "1", "0", ""], ["qqp test", "2", "0", "0", "1"]]


def test_blank_texts_are_no_sentences():
    part = text_set("x", [["", "a"], ["b", "!"]])
    assert part.sentences == {"a", "b"}
    assert part.pairs == frozenset()


def test_missing_files_are_left_out_and_damaged_ones_are_named(tmp_path):
    assert audit(["sst"], tmp_path) == ({"sentences": {}, "pairs": {}}, [])
    (tmp_path / "ids-sst-dev.csv").write_text("no table\n")
    _, damaged = audit(["sst"], tmp_path)
    assert len(damaged) == 1
    assert "ids-sst-dev.csv" in damaged[0]
