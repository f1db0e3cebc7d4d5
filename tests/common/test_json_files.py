"""Folders with checksums of their files."""

import pytest

from common.json_files import SUMS, checksums, integrity_error


def remove(folder):
    (folder / "a.txt").unlink()


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (remove, "damaged: a.txt is missing"),
        (lambda folder: (folder / "b.txt").write_text("x"), "damaged: b.txt was changed"),
        (
            lambda folder: [(folder / name).write_text("x") for name in ("a.txt", "b.txt")],
            "damaged: a.txt and 1 more was changed",
        ),
        (lambda folder: (folder / "c").write_text(""), "damaged: c is not among its checksums"),
        (lambda folder: (folder / SUMS).open("a").write("\n"), "damaged: SHA256SUMS was changed"),
        (lambda folder: (folder / SUMS).write_bytes(b"\xff"), "damaged: a.txt and 1 more is not"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_file(damage, found, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / SUMS).write_text(checksums(tmp_path))
    assert integrity_error(tmp_path) is None
    damage(tmp_path)
    assert f"{tmp_path}: {found}" in str(integrity_error(tmp_path))
