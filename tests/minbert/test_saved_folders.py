"""Folders of encoders as they are saved: permissions of their files, and a disk that is full."""

import os
import stat
import subprocess
import sys

import pytest

from minbert import BiEncoder


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o002])
def test_all_files_of_a_folder_get_the_permissions_of_new_files(tmp_path, mask):
    encoder, before = BiEncoder.from_pretrained("tiny"), os.umask(mask)
    try:
        encoder.save_pretrained(tmp_path / "encoder")
        (tmp_path / "new").touch()
    finally:
        os.umask(before)
    expected = stat.S_IMODE((tmp_path / "new").stat().st_mode)
    files = [path for path in (tmp_path / "encoder").rglob("*") if path.is_file()]
    assert "model.safetensors" in [path.name for path in files]
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in files} == dict.fromkeys(
        (path.name for path in files), expected
    )


FILLS = """
import resource, sys, torch
from pathlib import Path
from minbert.weights import save_tensors
from minbert.tokenizer import load_tokenizer
import minbert
folder = Path(sys.argv[1])
tokenizer = load_tokenizer(Path(minbert.__file__).with_name("tiny"), "bert", 7)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
for save in (
    lambda: tokenizer.save(folder),
    lambda: save_tensors({"a": torch.zeros(1000)}, folder / "model.safetensors"),
):
    try:
        save()
    except OSError as error:
        print(f"{error.filename}: {error.strerror}")
assert tokenizer(["one two three four five six seven eight"]).lengths.tolist() == [7]
"""


def test_a_full_disk_is_an_error_of_the_system_that_names_the_file(tmp_path):
    """A limit on the size of files stands for the disk."""
    command = [sys.executable, "-c", FILLS, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        f"{tmp_path / name}: File too large" for name in ("tokenizer.json", "model.safetensors")
    ]
    assert list(tmp_path.iterdir()) == []
