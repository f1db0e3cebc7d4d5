"""JSON objects with a checksum of their content."""

import json

import pytest

from common.errors import UserError
from common.json_files import (
    SEAL,
    SUMS,
    checksums,
    integrity_error,
    read_json,
    read_sealed,
    seal_of,
    write_json,
    write_sealed,
)

CONTENT = {"b": {"x": [1, 2.5, None], 3: "three"}, "a": 0.1 + 0.2, "c": "µ"}


def read(file, required=True):
    return read_sealed(file, UserError, "run it again", required)


def test_written_content_is_read_without_the_checksum(tmp_path):
    write_sealed(tmp_path / "x.json", CONTENT)
    expected = json.loads(json.dumps(CONTENT))
    assert read(tmp_path / "x.json") == expected
    assert list(read_json(tmp_path / "x.json")) == ["b", "a", "c", SEAL]


def test_order_and_white_space_change_nothing(tmp_path):
    write_sealed(tmp_path / "x.json", CONTENT)
    content = json.loads((tmp_path / "x.json").read_text())
    backwards = dict(reversed(content.items()))
    (tmp_path / "x.json").write_text(json.dumps(backwards, indent=None))
    assert read(tmp_path / "x.json")["c"] == "µ"
    assert seal_of(backwards) == seal_of(content) == content[SEAL]


@pytest.mark.parametrize(
    "changes", [{"a": 0.3}, {"b": {}}, {"new": 1}, {SEAL: "0" * 64}, {SEAL: 5}]
)
def test_any_edit_is_refused(tmp_path, changes):
    write_sealed(tmp_path / "x.json", CONTENT)
    write_json(tmp_path / "x.json", read_json(tmp_path / "x.json") | changes)
    for required in (True, False):
        with pytest.raises(UserError, match=r"x\.json: edited: .* do not agree; run it again$"):
            read(tmp_path / "x.json", required)


def test_a_missing_checksum_is_refused_if_required(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1})
    assert read(tmp_path / "x.json", required=False) == {"a": 1}
    with pytest.raises(UserError, match=r"x\.json: expected its sha256 .* found none; run it"):
        read(tmp_path / "x.json")


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
