"""--mode compare on finished runs: what it writes, and what it refuses before it computes."""

import shutil


def test_the_page_and_the_tables_of_trained_runs(ran, finished, tmp_path):
    folder, _ = finished
    runs = (f"one={folder}", f"two={folder}")
    out = tmp_path / "out"
    found = ran("--mode", "compare", "--runs", *runs, "--embeddings", "tsne", "--output", out)
    assert "Against one: the same examples" in found.stdout
    page = (out / "comparison.html").read_text()
    assert page.count('aria-label="Sentences of dev by label"') == 2
    assert (out / "comparison.md").read_text().count("\n## ") == 2
    assert (out / "comparison.tex").exists()


def test_a_page_without_the_sentences_where_they_are_not_asked_for_or_not_there(
    run, run_copy, tmp_path
):
    folder, _ = run_copy
    compare = ("--mode", "compare", "--runs", folder, "--output")
    assert run(*compare, tmp_path / "none", "--embeddings", "none").returncode == 0
    shutil.rmtree(folder / "checkpoint")
    assert run(*compare, tmp_path / "gone").returncode == 0
    for name in ("none", "gone"):
        assert "Sentences of dev" not in (tmp_path / name / "comparison.html").read_text()


def test_a_place_that_cannot_be_written(refused, finished, tmp_path):
    (tmp_path / "file").write_text("mine")
    call = ("--mode", "compare", "--runs", finished[0], "--output")
    assert "--output: expected a folder" in refused(1, *call, tmp_path / "file")
    (tmp_path / "out" / "comparison.tex").mkdir(parents=True)
    assert "expected a file or nothing, found a folder" in refused(1, *call, tmp_path / "out")
