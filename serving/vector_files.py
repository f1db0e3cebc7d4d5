"""Files of embeddings and texts for search engines: FAISS, Qdrant and pgvector.

    faiss      an index with ids, of the kinds of faiss.index_factory
    qdrant     one JSON object per line: id, vector, payload with the text
    pgvector   FILE.sql with the table, its import and an index; beside it, FILE.copy with the rows

The ids are the rows of the file, from 1. Embeddings have unit length, so that inner products are
cosines. Rows of empty texts are left out. Blocks of rows are in memory; FAISS keeps its whole index
there.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic_files import atomic_path, atomic_writer
from common.errors import SettingsError, UserError
from common.extras import missing
from common.progress import bar
from serving.rows import Rows

BLOCK = 4096  # rows in memory at a time
TRAINING = 100_000  # rows at most that an index of FAISS is trained on
COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)  # flags, length of the extension
COPY_END = struct.pack(">h", -1)
SCHEMA = """\\set ON_ERROR_STOP on
\\encoding UTF8
begin;
create extension if not exists vector;
create table sentences (
    id bigint primary key,  -- row of the file, from 1
    text text not null,
    embedding vector({width}) not null  -- of unit length
);
\\copy sentences (id, text, embedding) from {copy} with (format binary)
commit;
-- Building the index after the import is faster. Its memory: set maintenance_work_mem.
create index on sentences using hnsw (embedding vector_cosine_ops);
-- The ten nearest rows to a query:
-- select id, text, 1 - (embedding <=> '[...]') as cosine
-- from sentences order by embedding <=> '[...]' limit 10;
"""


@dataclass(frozen=True)
class Embedded:
    """Embeddings (n, H) with their n texts, which are read once, and FAISS's kind of index."""

    rows: Rows
    texts: Iterable[str]
    faiss_index: str = "Flat"

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, list[str]]]:
        """Yield ids (b,), embeddings (b, H) and texts of blocks without empty texts."""
        texts, total = iter(self.texts), len(self.rows)
        with bar("write", "row", total, passing=True) as progress:
            for begin in range(0, total, BLOCK):
                size = min(BLOCK, total - begin)
                some = [text for _, text in zip(range(size), texts, strict=False)]
                if len(some) < size:
                    raise UserError(f"expected {total:,} texts, found the file changed meanwhile")
                there = np.flatnonzero(~self.rows.empty[begin : begin + size])
                block = self.rows.take(slice(begin, begin + size))
                yield there + begin + 1, block[there], [some[place] for place in there]
                progress.update(size)


def write_faiss(target: Path, embedded: Embedded) -> None:
    """Write an index for `faiss.read_index`; its `search` returns cosines and ids."""
    faiss, rows = import_faiss(), embedded.rows
    kind = embedded.faiss_index
    try:
        index = faiss.index_factory(rows.width, f"IDMap,{kind}", faiss.METRIC_INNER_PRODUCT)
        if not index.is_trained:
            draw = np.random.default_rng(0)
            index.train(rows.take(np.sort(draw.permutation(rows.there())[:TRAINING])))
        for ids, block, _ in embedded.blocks():
            index.add_with_ids(np.ascontiguousarray(block), ids.astype(np.int64))
    except RuntimeError as error:
        known = "a kind of index of faiss.index_factory for these rows, such as Flat or HNSW32"
        reason = str(error).strip().splitlines()[-1]
        raise SettingsError(f"faiss_index: expected {known}, found {kind}: {reason}") from error
    with atomic_path(target) as new:
        faiss.write_index(index, str(new))


def import_faiss() -> Any:
    """Return the module faiss; raise UserError if it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise UserError(missing("faiss")) from error
    return faiss


def write_qdrant(target: Path, embedded: Embedded) -> None:
    """Write points for Qdrant's upload; nine digits determine a float32."""
    with atomic_writer(target) as file:
        for ids, block, texts in embedded.blocks():
            for number, vector, text in zip(ids, block.tolist(), texts, strict=True):
                payload = json.dumps({"text": text}, ensure_ascii=False)
                numbers = ",".join(map("{:.9g}".format, vector))
                file.write(f'{{"id":{number},"vector":[{numbers}],"payload":{payload}}}\n')


def write_pgvector(target: Path, embedded: Embedded) -> None:
    """Write PostgreSQL's binary COPY format, and its schema to `target`.

    pgvector's binary type has the number of dimensions and a zero, in two bytes each, then float4,
    all in network order (vector_recv in its vector.c). PostgreSQL has no NUL character in texts;
    it becomes U+FFFD.
    """
    rows, data = embedded.rows, data_file(target)
    vector_size = 4 + 4 * rows.width
    with atomic_path(data) as new:
        with new.open("xb") as file:
            file.write(COPY_HEAD)
            for ids, block, texts in embedded.blocks():
                numbers = block.astype(">f4")
                for number, vector, text in zip(ids.tolist(), numbers, texts, strict=True):
                    encoded = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode()
                    file.write(struct.pack(">hiqi", 3, 8, number, len(encoded)) + encoded)
                    file.write(struct.pack(">ihh", vector_size, rows.width, 0) + vector.tobytes())
            file.write(COPY_END)
        with atomic_writer(target) as schema:
            name = data.name.replace("'", "''")
            schema.write(SCHEMA.format(width=rows.width, copy=f"'{name}'"))


def data_file(target: Path) -> Path:
    """Return the file of rows beside the schema of pgvector."""
    return target.with_suffix(".copy")


@dataclass(frozen=True)
class Format:
    """The ending of an output file, and the function that writes it."""

    ending: str
    write: Callable[[Path, Embedded], None]


FORMATS = {
    "faiss": Format(".faiss", write_faiss),
    "qdrant": Format(".jsonl", write_qdrant),
    "pgvector": Format(".sql", write_pgvector),
}
