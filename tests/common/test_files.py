"""Files and folders are replaced completely or not at all, also by several processes."""

import pytest

from common.files import atomic_path, atomic_write_text


def test_line_breaks_stay_as_they_are(tmp_path):
    atomic_write_text(tmp_path / "text", "a\nb\r\nc\u2028d")
    assert (tmp_path / "text").read_bytes() == "a\nb\r\nc\u2028d".encode()


def test_an_error_leaves_the_old_content(tmp_path):
    atomic_write_text(tmp_path / "text", "before")

    def fail():
        with atomic_path(tmp_path / "text") as new:
            new.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]


def test_a_folder_is_replaced_only_with_overwrite(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("old")
    for overwrite, found in ((False, "old"), (True, "new")):
        try:
            with atomic_path(tmp_path / "out", overwrite) as new:
                new.mkdir()
                (new / "file").write_text("new")
        except OSError:
            assert not overwrite
        assert (tmp_path / "out" / "file").read_text() == found
        assert [one.name for one in tmp_path.iterdir()] == ["out"]
