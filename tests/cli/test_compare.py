"""--mode compare on finished runs: what it writes, and what it refuses before it computes."""

import shutil


def test_the_page_of_a_trained_run(run, finished, tmp_path):
    folder, _ = finished
    runs = (f"one={folder}", f"two={folder}")
    out = tmp_path / "out"
    found = run("--mode", "compare", "--runs", *runs, "--embeddings", "tsne", "--output", out)
    assert found.returncode == 0, found.stderr
    page = (out / "comparison.html").read_text()
    assert page.count('aria-label="Sentences of dev by label"') == 2


def test_a_page_without_the_sentences(run, finished, tmp_path):
    flags = ("--embeddings", "none", "--output", tmp_path / "out")
    assert run("--mode", "compare", "--runs", finished[0], *flags).returncode == 0
    assert "Sentences of dev" not in (tmp_path / "out" / "comparison.html").read_text()


def test_runs_without_weights_or_data_are_drawn_without_their_sentences(run, run_copy, tmp_path):
    folder, _ = run_copy
    shutil.rmtree(folder / "checkpoint")
    found = run("--mode", "compare", "--runs", folder, "--output", tmp_path / "out")
    assert found.returncode == 0, found.stderr
    assert "Sentences of dev" not in (tmp_path / "out" / "comparison.html").read_text()


def test_a_place_that_cannot_be_written(refused, finished, tmp_path):
    (tmp_path / "file").write_text("mine")
    call = ("--mode", "compare", "--runs", finished[0], "--output")
    assert "--output: expected a folder" in refused(1, *call, tmp_path / "file")
    (tmp_path / "out" / "comparison.tex").mkdir(parents=True)
    assert "expected a file or nothing, found a folder" in refused(1, *call, tmp_path / "out")
