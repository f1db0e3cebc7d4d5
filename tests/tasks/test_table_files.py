"""Data files: sentences and rows of text, CSV, TSV, JSON and Parquet files."""

import random
from datetime import datetime
from decimal import Decimal

import datasets
import pyarrow
import pytest
from pyarrow import parquet

from common.errors import Notice
from tasks.csv_files import Layout
from tasks.own_tasks import layout_keys
from tasks.tables import DataError, read_sentences, read_table

TEXTS = ["A cat sleeps.", "Zoë, who said: “no”", 'a "quoted" word', "日本語 🙂"]


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path, *columns, **layout):
    return [tuple(row.values()) for _, row in read_table(path, Layout(**layout)).fields(columns)]


def test_lines_of_a_text_file_with_blank_ones(tmp_path):
    content = "\ufeff" + "\r\n".join(TEXTS) + "\n\nlast without a line break"
    file = write(tmp_path / "a.txt", content)
    assert list(read_sentences(file)) == [*TEXTS, "", "last without a line break"]
    assert list(read_sentences(write(tmp_path / "no-ending", "one\ntwo\n"))) == ["one", "two"]


ZOE = [('Zoë: "no", yes', "1")]
SEMICOLONS = "text;y\nI, like;3,5\nwell, ok;1.234\n;-1,25\n"
LINES = [f"text {i},{'yn'[i % 2]}" for i in range(60)]
SWALLOWED = ["text,y", *LINES[:9], '"great,y', *LINES[9:40], 'it is 5 feet 6",n', *LINES[40:]]
DIALOGUE = ["text,y", *['"I see,y', 'no way",n', "so,y"] * 6]
LETTERS = 'text,y\n"Dear sir,\nplease, help\nbye",y\n"a\n\nb, c\n\n\n\nd",n\n'


@pytest.mark.filterwarnings("ignore::common.errors.Notice")
@pytest.mark.parametrize(
    ("name", "content", "layout", "expected"),
    [
        ("a.CSV", '\ufefftext,y\n"Zoë: ""no"", yes",1\n\n"a\nb",2', {}, [*ZOE, ("a\nb", "2")]),
        ("a.csv", "\n".join(SWALLOWED), {"quotes": False}, 62),
        ("a.csv", "\n".join(SWALLOWED), {"quotes": True}, 30),
        (
            "a.csv",
            LETTERS,
            {},
            [("Dear sir,\nplease, help\nbye", "y"), ("a\n\nb, c\n\n\n\nd", "n")],
        ),
        ("a.csv", SEMICOLONS, {}, [("I, like", "3.5"), ("well, ok", "1234"), ("", "-1.25")]),
        ("a.csv", f"sep=;\r\n{SEMICOLONS}", {}, 3),
        ("a.csv", "text|y\na, b|1,5\nc|2", {}, [("a, b", "1,5"), ("c", "2")]),
        ("a.txt", 'text ||| y\na | "b ||| 1\nc|||2', {}, [('a | "b', "1"), ("c", "2")]),
        ("a.txt", 'text,y\r"a, b",1\r', {}, [("a, b", "1")]),
        ("a.csv", "text\ty\r\na, b\t1\r\n", {}, [("a, b", "1")]),
        ("a.txt", "text:y\na:1", {"delimiter": ":"}, [("a", "1")]),
        ("a.txt", "text,y\na;b,1", layout_keys(["delimiter=,"]), [("a;b", "1")]),
        ("a.csv", "a,1\nb,2\n", {"header": ["text", "y"]}, [("a", "1"), ("b", "2")]),
        ("a.csv", "text,y\ncafé,1\n".encode("cp1252"), {"encoding": "cp1252"}, [("café", "1")]),
        ("a.csv", "text\ty\r\ncafé\t1\r\n".encode("utf-16"), {}, [("café", "1")]),
        ("a.jsonl", '{"text": "a"}\n{"y": 1}', {}, [("a", ""), ("", "1")]),
        ("a.json", '[{"text": "a"},\n {"text": "\\ud800", "y": 1}]', {}, [("a", ""), ("?", "1")]),
        ("a.jsonl", r'{"text": "\ud83d\ude42 \ud83d x", "y": 0}', {}, [("🙂 ? x", "0")]),
    ],
)
def test_rows_of_files_as_programs_write_them(tmp_path, name, content, layout, expected):
    found = read(write(tmp_path / name, content), "text", "y", **layout)
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_a_file_without_a_header_has_numbers_of_columns_and_what_is_recognised_is_said(tmp_path):
    file = write(tmp_path / "a.csv", "a;1,5\nb;2\n")
    with pytest.warns(Notice) as said:
        assert read(file, "2", header=False) == [("1.5",), ("2",)]
    lines = "the fields are separated by ;", "the numbers of column '2' have decimal commas"
    assert [str(one.message) for one in said] == [f"{file}: {line}" for line in lines]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"text\none\xff\n", "line 2: expected UTF-8 text, found byte 0xff"),
        ("a.csv", b"id,sentence\n1,a\n", "line 1: expected a column 'text', found id, sentence"),
        ("a.csv", b"text,a,text\nb,1,2\n", "expected a column 'text', found it twice"),
        ("a.csv", b'id,text\n1,"x\ny"\n2,a,b\n', "line 4: expected 2 comma-separated fields"),
        ("a.csv", b'id,text\n1,"open\n', "line 2: expected comma-separated fields, found"),
        ("a.csv", "\n".join(SWALLOWED), "line 11: several lines between quotation marks"),
        ("a.tsv", 'text\ty\n"a\t1\nb"\t2\n', "line 2: several lines between quotation marks"),
        ("a.csv", "\n".join(DIALOGUE), "line 2: several lines between .* --table quotes=no if"),
        ("a.jsonl", b'{"text": "a"}\n{"text"\n', "line 2: this is no valid JSON"),
        ("a.jsonl", b'{"text": {}}\n', "line 1: expected text or a number in 'text', found {}"),
        ("a.jsonl", b'{"text": "a"}\n["text"]', "line 2: expected a JSON object, found list"),
        ("a.json", b'[{"text": "a"},\n\n{"text": {}}]', "line 2: expected text or a number"),
        ("a.json", b'[{"text": "a"},\n{"text": "b"},', "line 2: this is no valid JSON"),
        ("a.parquet", b"PAR1 not at all", "cannot be read as Parquet"),
    ],
)
def test_faults_name_file_and_line(tmp_path, name, content, expected):
    file = write(tmp_path / name, content)
    with pytest.raises(DataError, match=expected) as error:
        list(read_sentences(file, "text"))
    message = str(error.value)
    assert message.startswith(str(file))
    assert "\n" not in message


WORDS = ["a", "é", "日", "5,5", "-", "", "x; y", "b | c", "it's", "\u2028", "NaN", "\0", "\x1f"]


@pytest.mark.filterwarnings("ignore::common.errors.Notice")
@pytest.mark.parametrize("seed", range(200))
def test_odd_small_tables_have_all_their_rows_or_one_line(tmp_path, seed):
    """A sound table has all its rows; one with a damaged cell has them, or is refused."""
    draw = random.Random(seed)
    mark, end = draw.choice("\t,;|"), draw.choice(["\n", "\r\n", "\r"])
    blank, last = draw.choice(["", end]), end * draw.randint(0, 2)
    encoding = draw.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
    layout = {} if encoding.startswith("utf") else {"encoding": encoding}
    quoted, damage = draw.random() < 0.5, draw.choice([None, '"{}', '{}"', "{}" + mark, '"{}"x'])
    cells = []
    for _ in range(draw.randint(1, 12)):
        text = " ".join(draw.choices(WORDS, k=3)) or "z"
        cells.append(f'"{text}"' if quoted else text.replace(mark, " "))
    for row in draw.sample(range(len(cells)), min(2, len(cells))) if damage else ():
        cells[row] = damage.format(row)
    labels = [str(row % 2) for row in range(len(cells))]
    lines = [f"text{mark}y", *map(mark.join, zip(cells, labels, strict=True))]
    content = (blank + (end + blank).join(lines) + last).encode(encoding, "replace")
    file = write(tmp_path / ("a.tsv" if mark == "\t" else "a.csv"), content)
    try:
        found = [row[1] for row in read(file, "text", "y", **layout)]
    except DataError as error:
        found = str(error)
    if isinstance(found, str):
        assert damage
        assert found.startswith(f"{file}, line ")
        assert len(found.splitlines()) == 1
    else:
        assert found == labels


def test_a_parquet_file_has_the_names_of_classes(tmp_path):
    features = datasets.Features(
        t=datasets.Value("string"),
        y=datasets.ClassLabel(names=["no", "yes"]),
        z=datasets.List(datasets.ClassLabel(names=["a", "b"])),
    )
    rows = {"t": ["one", "two", "three"], "y": [1, 0, None], "z": [[1], [], [0, 1]]}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "d.parquet")
    table = read_table(tmp_path / "d.parquet")
    assert [row["z"] for _, row in table.rows] == [["b"], [], ["a", "b"]]
    assert read(table.path, "t", "y") == [("one", "yes"), ("two", "no"), ("three", "")]


def test_numbers_dates_and_missing_values_become_text(tmp_path):
    moments = pyarrow.array([datetime(2024, 1, 31), None], pyarrow.timestamp("s"))
    table = {"a": [1.5, 2.0], "b": [True, None], "c": [Decimal("1.50"), None], "d": moments}
    parquet.write_table(pyarrow.table(table), tmp_path / "d.parquet")
    found = read(tmp_path / "d.parquet", *table)
    assert found == [("1.5", "1", "1.50", "2024-01-31 00:00:00"), ("2", "", "", "")]


BYTES = pyarrow.array([b"\xff\xfe"])


@pytest.mark.parametrize(
    ("column", "about"),
    [
        (pyarrow.array([10**12], pyarrow.timestamp("s")), b"{}"),
        (pyarrow.Array.from_buffers(pyarrow.string(), 1, BYTES.buffers()), b"{}"),
        (BYTES, b"\xff"),
        (["a"], b'{"info": 5}'),
        (["a"], b'{"info": {"features": {"t": {"names": 5, "_type": "ClassLabel"}}}}'),
    ],
)
def test_odd_dates_bytes_and_metadata_of_parquet_are_refused_in_one_line(tmp_path, column, about):
    table = pyarrow.table({"t": column}).replace_schema_metadata({b"huggingface": about})
    parquet.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"d\.parquet: cannot be read as Parquet: ") as error:
        read_table(tmp_path / "d.parquet")
    assert len(str(error.value).splitlines()) == 1
