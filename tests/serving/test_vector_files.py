"""Files for search engines: read back by the engine's library, or by the format's description."""

import json
import struct
import sys

import faiss
import numpy as np
import pytest
from test_mining import unit_rows

from common.errors import SettingsError, UserError
from serving import vector_files
from serving.rows import Rows
from serving.search import search
from serving.vector_files import Embedded, write_faiss, write_pgvector, write_qdrant

TEXTS = ["tab\tand \\ back\\slash", "", 'a "quote"', "zero\0", "Zürich 😀", "two\nlines"] * 5


@pytest.fixture
def embedded(monkeypatch):
    """Thirty rows of which every sixth is empty, in blocks of seven."""
    monkeypatch.setattr(vector_files, "BLOCK", 7)
    array = unit_rows(30, 16)
    array[1::6] = np.nan
    return Embedded(Rows.of(array), iter(TEXTS))


def there(embedded):
    return embedded.rows.there().tolist()


@pytest.mark.parametrize("kind", ["Flat", "HNSW8", "IVF2,Flat"])
def test_faiss_finds_the_rows_that_the_exact_search_finds(kind, embedded, tmp_path):
    """An index of 25 rows that looks at all of them."""
    write_faiss(tmp_path / "a.faiss", Embedded(embedded.rows, TEXTS, kind))
    index = faiss.read_index(str(tmp_path / "a.faiss"))
    if "IVF" in kind:
        faiss.extract_index_ivf(index).nprobe = 2
    queries = unit_rows(4, 16, seed=1)
    cosines, ids = index.search(queries, 5)
    expected = search(embedded.rows, queries, 5)
    assert (ids - 1).tolist() == expected.rows.tolist()
    np.testing.assert_allclose(cosines, expected.cosines, atol=1e-6)
    assert index.ntotal == 25


@pytest.mark.parametrize("kind", ["Nothing", "IVF4096,Flat"])
def test_an_index_that_faiss_cannot_make_is_one_line(kind, embedded, tmp_path):
    with pytest.raises(SettingsError, match=r"faiss_index: expected a kind .*, found " + kind):
        write_faiss(tmp_path / "a.faiss", Embedded(embedded.rows, TEXTS, kind))
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_one_line(embedded, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(UserError, match="expected the package faiss, found none: pip install"):
        write_faiss(tmp_path / "a.faiss", embedded)


def test_points_of_qdrant_are_objects_with_id_vector_and_payload(embedded, tmp_path):
    write_qdrant(tmp_path / "a.jsonl", embedded)
    points = [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()]
    assert [point["id"] - 1 for point in points] == there(embedded)
    assert [point["payload"] for point in points] == [{"text": TEXTS[r]} for r in there(embedded)]
    vectors = np.array([point["vector"] for point in points], np.float32)
    assert np.array_equal(vectors, embedded.rows.array[there(embedded)])  # to the last bit


def test_rows_of_pgvector_are_those_of_the_binary_copy_format(embedded, tmp_path):
    """https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4"""
    write_pgvector(tmp_path / "it's.sql", embedded)
    data = (tmp_path / "it's.copy").read_bytes()
    assert data[:19] == b"PGCOPY\n\xff\r\n\0" + bytes(8)
    place, found = 19, []
    while (fields := struct.unpack_from(">h", data, place)[0]) != -1:
        place, row = place + 2, []
        for _ in range(fields):
            (size,) = struct.unpack_from(">i", data, place)
            row.append(data[place + 4 : place + 4 + size])
            place += 4 + size
        found.append(row)
    assert place + 2 == len(data)
    assert [int.from_bytes(row[0], "big") - 1 for row in found] == there(embedded)
    texts = [TEXTS[row].replace("\0", "\ufffd") for row in there(embedded)]
    assert [row[1].decode() for row in found] == texts
    vectors = [np.frombuffer(row[2][4:], ">f4") for row in found]
    assert np.array_equal(vectors, embedded.rows.array[there(embedded)])
    assert {row[2][:4] for row in found} == {struct.pack(">hh", 16, 0)}
    schema = (tmp_path / "it's.sql").read_text()
    assert "vector(16)" in schema
    assert "from 'it''s.copy' with (format binary)" in schema


@pytest.mark.parametrize("write", [write_faiss, write_qdrant, write_pgvector])
def test_a_file_with_fewer_texts_is_refused(write, embedded, tmp_path):
    with pytest.raises(UserError, match="expected 30 texts, found the file changed"):
        write(tmp_path / "a.sql", Embedded(embedded.rows, TEXTS[:29]))
    assert not list(tmp_path.iterdir())
