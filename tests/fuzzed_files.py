"""Hypothesis strategies for malformed files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from hypothesis import strategies as st

ODD_TEXTS = (
    *("", " ", "\t", "\n", "\r", "\r\n", '"', '""', "'", ",", "\\", "\x00", "\x1c", "\u2028"),
    *("a\tb", "a,b", 'say "hi"', '"open', "two\nlines", "one\rmore", "\ufeffmark", "-", "nan"),
    *(
        "\U0001f600 emoji \U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u0645\u0631\u062d\u0628\u0627",
    ),
    *("\u202eright to left\u202c", "e\u0301 combining", "\u0130stanbul", "日本語", "ﬁ", "word"),
    *("\ud800", "a \udfff b", "x" * 5000, "word " * 3000, " , ", "id", "1e400", "-0", "0x10", "½"),
)
ODD_LABELS = (
    *("", "-", "0", "1", "2", "4", "5", "-1", "1.0", "0.5", "2.5", "5.1", "nan", "inf", "-inf"),
    *("1e3", " 1 ", "one", "٣", "1_0", "true", "entailment", "neutral", "contradiction", "HUM"),
)
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=20), st.just("a good film"))
labels = st.one_of(st.sampled_from(ODD_LABELS), st.sampled_from(["0", "1"]), st.text(max_size=4))
identities = st.one_of(st.integers(0, 99).map(str), st.sampled_from(ODD_TEXTS))
separators = st.sampled_from(["\t"] * 6 + [","] * 3 + [";", "|", " "])
SURROGATES = set(map(chr, range(0xD800, 0xE000)))
line_ends = st.sampled_from(["\n"] * 4 + ["\r\n", "\r", "\n\n", ""])
encodings = st.sampled_from(["utf-8"] * 5 + ["utf-8-sig", "utf-16", "latin-1", "utf-32"])


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes, or cut, with others put in, or with some of them changed."""
    kind = draw(st.sampled_from(["whole"] * 5 + ["cut", "put in", "changed", "empty"]))
    place = draw(st.integers(0, max(0, len(content) - 1)))
    some = draw(st.binary(min_size=1, max_size=4))
    if kind == "cut":
        return content[:place]
    if kind == "put in":
        return content[:place] + some + content[place:]
    if kind == "changed":
        return content[:place] + some + content[place + len(some) :]
    return b"" if kind == "empty" else content


@st.composite
def headers(draw: st.DrawFn, columns: Sequence[str]) -> list[str]:
    """The columns, mostly as they should be: else in another order, one gone, twice or renamed."""
    names = list(columns)
    kind = draw(st.sampled_from(["same"] * 6 + ["order", "gone", "twice", "renamed", "more"]))
    one = draw(st.integers(0, len(names) - 1))
    if kind == "order":
        return draw(st.permutations(names))
    if kind == "gone":
        del names[one]
    if kind == "twice":
        names.append(names[one])
    if kind == "renamed":
        names[one] = draw(texts)
    if kind == "more":
        names.insert(one, draw(texts))
    return names


def field(column: str) -> st.SearchStrategy[str]:
    if column == "id":
        return identities
    return texts if "sentence" in column or "text" in column.lower() else labels


@st.composite
def sound_tables(draw: st.DrawFn, columns: Sequence[str]) -> bytes:
    """A file as it should be, but for its texts."""
    readable = texts.filter(lambda text: not set(text) & SURROGATES)
    odd = st.tuples(*(readable for _ in columns))
    rows = draw(st.lists(odd, min_size=2, max_size=6))
    target = io.StringIO(newline="")
    writer = csv.writer(target, delimiter="\t", lineterminator="\n")
    writer.writerow(columns)
    for number, row in enumerate(rows):
        good = {"id": str(number)} | dict.fromkeys(columns[-1:], str(number % 2))
        writer.writerow([good.get(name, text) for name, text in zip(columns, row, strict=True)])
    return target.getvalue().encode()


@st.composite
def tables(draw: st.DrawFn, columns: Sequence[str]) -> bytes:
    """A file of separated fields with a header line, quoted as may be."""
    names, separator, end = draw(headers(columns)), draw(separators), draw(line_ends)
    rows = draw(st.lists(st.tuples(*(field(name) for name in names)), max_size=6))
    if draw(st.booleans()):
        rows = [(str(i), *row[1:]) for i, row in enumerate(rows)]
    target = io.StringIO(newline="")
    if draw(st.booleans()):
        writer = csv.writer(target, delimiter=separator, lineterminator=end or "\n")
        writer.writerows([names, *rows])
    else:  # fields as they are: quotes, separators and line ends in them mean what they mean
        target.write("".join(separator.join(row) + end for row in [names, *rows]))
    return draw(damaged(encoded(target.getvalue(), draw(encodings))))


@st.composite
def json_lines(draw: st.DrawFn, columns: Sequence[str]) -> bytes:
    """A JSON object a line, or something else."""
    value = st.one_of(texts, labels, st.none(), st.integers(), st.floats(), st.booleans())
    row = st.dictionaries(st.sampled_from([*columns, "more"]), value)
    good = st.tuples(*(field(name) for name in columns)).map(
        lambda fields: dict(zip(columns, fields, strict=True))
    )
    lines = draw(st.lists(st.one_of(good, good, row, st.lists(value), value), max_size=6))
    text = draw(line_ends).join(
        json.dumps(line, ensure_ascii=draw(st.booleans())) for line in lines
    )
    nested = "[" * draw(st.sampled_from([0, 0, 0, 100_000]))
    return draw(damaged(encoded(text + nested, draw(encodings))))


def encoded(text: str, encoding: str) -> bytes:
    """Bytes of a text; what the encoding lacks becomes what it should never hold."""
    try:
        return text.encode(encoding, "surrogatepass")
    except (UnicodeEncodeError, ValueError):
        return text.encode("utf-8", "surrogatepass")
