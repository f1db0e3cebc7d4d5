"""A hundred tables that users might bring: each gives one line of error, or the rows it holds."""

import csv
import io
import json
import random
from itertools import product

import pytest

from common.errors import UserError
from tasks.own_tasks import table_tasks

ROWS = 60
LABELS = {
    "words": lambda row, draw: draw.choice(["room", "food", "staff"]),
    "one class": lambda row, draw: "room",
    "numbers and words": lambda row, draw: draw.choice(["1", "2", "many", "2.5"]),
    "blanks everywhere": lambda row, draw: draw.choice(["", " ", "\t", "yes", "no"]),
    "nothing": lambda row, draw: "",
    "separators in names": lambda row, draw: draw.choice(["a|b", "b", "a, b", "c;d"]),
    "odd numbers": lambda row, draw: draw.choice(["nan", "inf", "1e400", "-0", "٣", "1_0"]),
    "floats": lambda row, draw: f"{draw.random():.3f}",
    "one of each": lambda row, draw: f"label {row}",
    "odd names": lambda row, draw: draw.choice(
        ["ja\u2028nein", "\u202eyes", "日本", "e\u0301", "é"]
    ),
}
SHAPES = (
    *("plain", "tabs", "line breaks in cells", "byte order mark", "10 MB cell"),
    *("a field too few", "a column twice", "latin-1", "JSON lines of all types", "three rows"),
    "labels unseen in train",
)


def rows_of(kind: str, shape: str) -> list[list[str]]:
    draw = random.Random(f"{kind} {shape}")
    count = 3 if shape == "three rows" else ROWS
    rows = []
    for row in range(count):
        text = f"guest {row} says {draw.choice(['yes', 'no', 'é', '“so”'])}"
        if shape == "line breaks in cells":
            text = text.replace(" says ", '\nsays, "well",\r\n')
        if row == 1 and shape == "10 MB cell":
            text = "long " * (2_000_000 if kind == "words" else 20_000)
        if row % 7 == 3:
            text = draw.choice(["", "  "])
        rows.append([text, LABELS[kind](row, draw), draw.choice(["up", "down", ""])])
    return rows


def write(path, kind: str, shape: str):
    """Write the table; return its path."""
    rows, header = rows_of(kind, shape), ["text", "label", "other"]
    if shape == "JSON lines of all types":
        odd = [None, True, 3, 2.5, ["a", "b"], {"a": 1}, "text"]
        lines = []
        for number, row in enumerate(rows):
            content = dict(zip(header, row, strict=True))
            content["unused"] = odd[number % len(odd)]
            if number == 5 and kind == "one class":
                content["label"] = {"a": 1}
            lines.append(json.dumps(content))
        (path / "table.jsonl").write_text("\n".join(lines), "utf-8")
        return path / "table.jsonl"
    if shape == "a column twice":
        header = ["text", "label", "label"]
    if shape == "a field too few":
        rows[4] = rows[4][:2]
    tabs = shape == "tabs"
    content = io.StringIO(newline="")
    csv.writer(content, delimiter="\t" if tabs else ",").writerows([header, *rows])
    encoding = {"byte order mark": "utf-8-sig", "latin-1": "latin-1"}.get(shape, "utf-8")
    file = path / ("table.tsv" if tabs else "table.csv")
    file.write_bytes(content.getvalue().encode(encoding, "replace"))
    return file


def expected(kind: str, shape: str, column: int) -> list[tuple[str, str]]:
    """The text and the label of each row that has both, from the cells as they were written."""
    found = ((row[0].strip(), row[column].strip()) for row in rows_of(kind, shape))
    return sorted((text, label) for text, label in found if text and label)


def answer(task, folder) -> list[tuple[str, str]]:
    """The same from the task's three splits."""
    built, found = task.build(), []
    for split in built.source.splits:
        examples = built.read(folder, split)
        for text, target in zip(examples.texts[0], examples.targets, strict=True):
            found.append((text, built.output.show(target)))
    return sorted(found)


def same(task, found: str, wanted: str) -> bool:
    """Whether a label is that of the cell: as text, as a number, or as a set of labels."""
    kind = task.build().kind
    if kind.labels is not None:
        separator = task.separator
        return set(found.split(separator)) == {one.strip() for one in wanted.split(separator)}
    return found == wanted if kind.classes else float(found) == pytest.approx(float(wanted))


@pytest.mark.parametrize(("kind", "shape"), list(product(LABELS, SHAPES)))
def test_a_table_gives_one_line_or_its_rows(kind, shape, tmp_path):
    file, further = write(tmp_path, kind, shape), {}
    if shape == "labels unseen in train":
        further = {"dev": tmp_path / "dev.csv"}
        rows = [["text", "label", "other"], ["a new guest", "never seen", "up"]]
        further["dev"].write_text("".join(f"{','.join(row)}\n" for row in rows))
    try:
        tasks = table_tasks(file, text="text", labels=["label", "other"], **further)
        answers = [answer(task, tmp_path) for task in tasks]
    except UserError as error:
        line = str(error)
        assert "\n" not in line
        assert len(line) < 400
        assert "expected" in line
        assert "found" in line
        return
    for column, (task, found) in enumerate(zip(tasks, answers, strict=True), 1):
        wanted = expected(kind, shape, column)
        assert [text for text, _ in found] == [text for text, _ in wanted]
        pairs = zip(found, wanted, strict=True)
        assert all(same(task, one, other) for (_, one), (_, other) in pairs)
