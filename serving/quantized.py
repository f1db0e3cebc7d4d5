"""Embeddings in one byte or one bit per number, for a first pass that an exact one follows.

    int8     round(x / s) with the scale s = max|x| / 127 of its row
    binary   the sign of x, eight in a byte

The query has int8 numbers in both: its products with signs rank better than the Hamming distance,
which would have signs of the query, too. All products are exact sums of integers.

The codes of a file FILE.npy are kept in the folder FILE.npy.int8 or FILE.npy.binary beside it, with
a stamp of the file. They are rebuilt if the file was changed.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.atomic_files import atomic_path
from common.errors import UserError
from common.json_files import read_json, write_json
from common.progress import bar
from minbert.int8_products import exact_products, fastest
from serving.rows import Rows

Arrays = Mapping[str, np.ndarray]
VERSION = 1  # of the files in an index
BLOCK = 16384  # rows that are quantised at a time
STAMP = "index.json"
PIECES, PIECE = 256, 4096  # pieces of the source in its checksum, and the bytes of each


Product = Callable[[Tensor, Tensor, Tensor], Tensor]


def float_product(left: Tensor, right: Tensor, sums: Tensor) -> Tensor:
    """Return left @ right.T of int8 (a, H) and (b, H), in float32; `sums` are not used.

    Sums of 127 x 127 are exact for widths up to 1,040; wider ones are summed in float64.
    """
    kind = torch.float32 if left.shape[1] * 127 * 127 < 1 << 24 else torch.float64
    return (left.to(kind) @ right.to(kind).T).float()


def int8_product(left: Tensor, right: Tensor, sums: Tensor) -> Tensor:
    """Return left @ right.T of int8 (a, H) and (b, H), in int32, written to `sums` (a, b)."""
    return torch._int_mm(left, right.T, out=sums)


@cache
def fastest_product() -> Product:
    """Return the faster of the two products on this CPU; both have the same results.

    PyTorch's own product of int8 is not exact on every CPU.
    """
    if not exact_products():
        return float_product
    draw = torch.Generator().manual_seed(0)
    left, right = (
        torch.randint(-127, 128, (rows, 384), dtype=torch.int8, generator=draw)
        for rows in (33, 2048)
    )
    sums = torch.empty(33, 2048, dtype=torch.int32)
    products = (int8_product, float_product)
    return min(products, key=lambda one: fastest(partial(one, left, right, sums)))


def to_int8(block: np.ndarray) -> dict[str, np.ndarray]:
    """Return codes (b, H), scales (b,), and the norms (b,) of the rounding errors."""
    block = np.nan_to_num(block)
    scales = np.abs(block).max(1) / np.float32(127)
    codes = np.rint(block / np.maximum(scales, np.float32(1e-30))[:, None]).astype(np.int8)
    errors = np.linalg.norm(block - codes * scales[:, None], axis=1).astype(np.float32)
    return {"codes": codes, "scales": scales, "errors": errors}


def to_bits(block: np.ndarray) -> dict[str, np.ndarray]:
    """Return the signs of a block (b, H), packed (b, H / 8)."""
    return {"codes": np.packbits(block > 0, axis=1)}


def int8_scores(queries: Arrays, rows: Arrays, space: Tensor | None = None) -> Tensor:
    """Return approximate cosines (q, b), as multiples of the scale of each query."""
    left, right = torch.from_numpy(queries["codes"]), torch.from_numpy(rows["codes"])
    return products(left, right, space).mul_(torch.from_numpy(rows["scales"]))


def binary_scores(queries: Arrays, rows: Arrays, space: Tensor | None = None) -> Tensor:
    """Return numbers (q, b) that grow with the product of a query and the signs of a row.

    With bits 0 and 1, the product is half of that with signs and half the sum of the query.
    """
    left = torch.from_numpy(queries["codes"])
    bits = np.unpackbits(rows["codes"], axis=1, count=left.shape[1]).view(np.int8)
    return products(left, torch.from_numpy(bits), space)


def products(left: Tensor, right: Tensor, space: Tensor | None) -> Tensor:
    """Return left @ right.T of int8 (q, H) and (b, H), in float32.

    The result is in `space`, float32 of at least 2 q b, if it is given: a loop that allocates large
    tensors between small ones that stay would fragment the memory.
    """
    shape, size = (len(left), len(right)), len(left) * len(right)
    space = torch.empty(2 * size) if space is None else space
    sums = space[:size].view(torch.int32).view(shape)
    # With a width of 1, torch 2.13's _int_mm returns without a result.
    product = fastest_product() if left.shape[1] > 1 else float_product
    return space[size : 2 * size].view(shape).copy_(product(left, right, sums))


@dataclass(frozen=True)
class Code:
    """How rows are stored, and compared with queries, which are stored in int8.

    Args:
        layout: shape and type of each array for n rows of width H.
        quantize: arrays of a block (b, H).
        scores: numbers (q, b) that order the rows by similarity to each query; see `products`
            for its third argument.
    """

    layout: Callable[[int, int], dict[str, tuple[tuple[int, ...], Any]]]
    quantize: Callable[[np.ndarray], dict[str, np.ndarray]]
    scores: Callable[[Arrays, Arrays, Tensor | None], Tensor]


def int8_layout(n: int, width: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    one = ((n,), np.float32)
    return {"codes": ((n, width), np.int8), "scales": one, "errors": one}


def binary_layout(n: int, width: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    return {"codes": ((n, -(-width // 8)), np.uint8)}


CODES = {
    "int8": Code(int8_layout, to_int8, int8_scores),
    "binary": Code(binary_layout, to_bits, binary_scores),
}


@dataclass(frozen=True)
class Index:
    """The codes of all rows: arrays in memory, or mapped from a folder."""

    code: Code
    arrays: Arrays
    folder: Path | None = None

    def take(self, which: slice | np.ndarray) -> dict[str, np.ndarray]:
        return {name: array[which] for name, array in self.arrays.items()}


def index_of(rows: Rows, name: str) -> Index:
    """Return the index of rows; that of a file is kept beside it, and rebuilt if it is stale."""
    code = CODES[name]
    layout = code.layout(len(rows), rows.width)
    if rows.source is None:
        arrays = {key: np.empty(shape, kind) for key, (shape, kind) in layout.items()}
        for begin, part in quantized(rows, code):
            for key, values in part.items():
                arrays[key][begin : begin + len(values)] = values
        return Index(code, arrays)
    folder = rows.source.with_name(f"{rows.source.name}.{name}")
    shape = {"rows": len(rows), "width": rows.width, "empty": digest_of(rows.empty)}
    stamp = stamp_of(rows.source) | shape | {"version": VERSION}
    if folder.exists():
        if not (folder / STAMP).is_file():
            wanted = f"an index of --search {name} or nothing"
            raise UserError(f"{folder}: expected {wanted}, found something else")
        if (kept := opened(folder, layout, stamp)) is not None:
            return Index(code, kept, folder)
        line = f"{folder}: index of another {rows.source.name} or other texts; rebuilding it"
        print(line, file=sys.stderr)
    with atomic_path(folder) as new:
        new.mkdir()
        write_index(new, rows, code, layout)
        write_json(new / STAMP, stamp)
    arrays = opened(folder, layout, stamp)
    if arrays is None:
        raise UserError(f"{folder}: expected the index just written, found another")
    return Index(code, arrays, folder)


def write_index(folder: Path, rows: Rows, code: Code, layout: Mapping[str, Any]) -> None:
    """Write one array per file; a full disk is an OSError, which a mapped file would not raise."""
    files = {key: (folder / f"{key}.npy").open("wb") for key in layout}
    try:
        for key, (shape, kind) in layout.items():
            head = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(files[key], head)
        for _, part in quantized(rows, code):
            for key, values in part.items():
                files[key].write(np.ascontiguousarray(values).data)
    finally:
        for file in files.values():
            file.close()


def quantized(rows: Rows, code: Code) -> Any:
    """Yield the first row and the arrays of each block, with a progress bar."""
    with bar("quantise", "row", len(rows), passing=True) as progress:
        for begin in range(0, len(rows), BLOCK):
            yield begin, code.quantize(rows.take(slice(begin, begin + BLOCK)))
            progress.update(min(BLOCK, len(rows) - begin))


def opened(folder: Path, layout: Mapping[str, Any], stamp: Mapping[str, Any]) -> Any:
    """Return the arrays of an index, or None if it is incomplete or that of another file."""
    try:
        if read_json(folder / STAMP) != stamp:
            return None
        # Copied on writing, which nothing does: a tensor shares the memory of writable arrays only.
        arrays = {key: np.load(folder / f"{key}.npy", mmap_mode="c") for key in layout}
    except (OSError, ValueError, EOFError):
        return None
    fits = all((arrays[key].shape, arrays[key].dtype) == layout[key] for key in layout)
    return arrays if fits else None


def digest_of(mask: np.ndarray) -> str:
    """Return a checksum of a mask (n,)."""
    return hashlib.blake2b(np.packbits(mask).tobytes(), digest_size=16).hexdigest()


def stamp_of(file: Path) -> dict[str, Any]:
    """Return size, time of change and a checksum of 256 pieces of a file.

    A checksum of the whole file would take as long as a search.
    """
    about, digest = file.stat(), hashlib.blake2b(digest_size=16)
    with file.open("rb") as opened:
        for place in np.linspace(0, max(0, about.st_size - PIECE), PIECES).astype(int):
            opened.seek(int(place))
            digest.update(opened.read(PIECE))
    return {"bytes": about.st_size, "modified": about.st_mtime_ns, "pieces": digest.hexdigest()}
