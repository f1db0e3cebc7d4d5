"""Text with delimiters as rows: how it is written is recognised, or said by a Layout."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec import Meta

from common.settings import Name, Settings

DELIMITERS = ("\t", "|||", ",", ";", "|")
UNIT = "\x1f"  # in place of |||, as a delimiter of the csv module has one character
MOST_SEEN = 50  # lines, from which the delimiter is recognised
MOST_JOINED = 4  # commas or line breaks in a cell whose lines look like rows
Delimiter = Annotated[
    str, Meta(pattern='^(\\|\\|\\||[^"\r\n])$', description="one character or |||")
]
Rows = list[tuple[int, dict[str, Any]]]  # line number from 1, values by column

# The csv module's limit of 131,072 characters is too small for long texts. Without a limit, an open
# quote would include the rest of a file of any size.
csv.field_size_limit(1 << 24)


class Layout(Settings):
    """How a table of text is written, where it does not follow from the file."""

    quotes: bool | None = None  # False: ordinary characters; True: also around many lines
    header: bool | tuple[Name, ...] = True  # False: the columns are 1, 2, ...; or their names
    delimiter: Delimiter | None = None
    encoding: str | None = None  # default: UTF-8, or UTF-16 with a byte-order mark

    def faults(self) -> Iterator[str]:
        try:
            "a".encode(self.encoding or "utf-8")
        except (LookupError, ValueError):
            yield f"encoding: expected a name such as cp1252 or utf-16, found {self.encoding!r}"


def csv_rows(content: str, layout: Layout, ending: str) -> tuple[list[str], Rows, str]:
    """Return columns, rows and delimiter of a file; raise ValueError with the line of a fault."""
    if said := re.match(r"sep=(.)[\r\n]+", content):  # by Excel
        content = "\n" + content[said.end() :]
    lines = [*io.StringIO(content, newline="")]  # a lone carriage return ends a line, too
    delimiter = layout.delimiter or (said[1] if said else delimiter_of(lines, ending))
    kind = {"\t": "tab", ",": "comma", ";": "semicolon"}.get(delimiter, delimiter)
    quoted, mark = layout.quotes is not False, delimiter
    if delimiter == "|||":
        quoted, mark = False, UNIT
        lines = [re.sub(r" ?\|\|\| ?", UNIT, line) for line in lines]
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=mark, quoting=quoting, strict=True)
    columns = list(layout.header) if isinstance(layout.header, tuple) else []
    rows: Rows = []
    alike, breaks = list[tuple[int, int]](), 0  # (line, breaks) of cells whose lines look like rows
    line = 1  # the first line of a row that spans several
    try:
        for fields in reader:
            if fields and not columns and layout.header is True:
                columns = fields
            elif fields:
                columns = columns or [str(number + 1) for number in range(len(fields))]
                marks = len(columns) - 1
                if len(fields) != len(columns):
                    expected = f"expected {len(columns)} {kind}-separated fields"
                    raise ValueError(f"line {line}: {expected}, found {len(fields)}")
                rows.append((line, dict(zip(columns, fields, strict=True))))
                if joined := reader.line_num - line:
                    breaks += joined
                    several = lines[line - 1 : reader.line_num]
                    alike += [(line, joined)] * all(one.count(mark) == marks for one in several)
            line = reader.line_num + 1
    except csv.Error as error:
        cure = "; if quotation marks are characters, add --table quotes=no" if quoted else ""
        expected = f"expected {kind}-separated fields"
        raise ValueError(f"line {line}: {expected}, found: {error}{cure}") from error
    # Each line of such a cell has as many delimiters as a row. Those of a few short cells with
    # commas, and of a file with one column, have them by chance.
    most = MOST_JOINED if mark == "," or len(columns) == 1 else 0
    wrong = [line for line, joined in alike if joined * max(1, len(columns) - 1) > most]
    total = sum(joined for _, joined in alike) if len(columns) > 1 else 0
    if layout.quotes is None and (wrong or (total > most and 2 * total > breaks)):
        found = "several lines between quotation marks look like rows"
        cure = "add --table quotes=no if the marks are characters, quotes=yes if it is one cell"
        raise ValueError(f"line {(wrong or alike[0])[0]}: {found}; {cure}")
    return columns, rows, delimiter


def delimiter_of(lines: Sequence[str], ending: str) -> str:
    """Return the delimiter with which most rows are as wide as the header, or the usual one."""
    header = next(filter(str.strip, lines), "")
    comma = ending == ".csv" or (ending != ".tsv" and "," in header)
    usual = "," if comma and "\t" not in header else "\t"
    best, most = usual, 0.0
    for one in (one for one in ("|||", usual, *DELIMITERS) if one in header):
        seen = [line.replace(one, UNIT) for line in lines[:MOST_SEEN]]
        try:
            widths = [len(row) for row in csv.reader(seen, delimiter=UNIT) if row]
        except csv.Error:  # a field is too long
            continue
        share = widths.count(widths[0]) / len(widths) if widths and widths[0] > 1 else 0.0
        if share > most and (one == usual or share >= 0.5):
            best, most = one, share
    return best
