"""Tasks of the catalog's tables, in their published files: GLUE, CLUE, reviews and topics."""

import csv
import json
from pathlib import Path

import pytest

from tasks.built_in import DATA_SETS, TABLE, build_task
from tasks.tables import DataError

SPLITS = ("train", "dev", "test")
GLUE, CLUE, REVIEWS = ({name: DATA_SETS[name] for name in group} for group in TABLE.values())
FILES = {
    "sst2": "sentence\tlabel\nit 's a charming \" journey . \t1\nunflinchingly bleak\t0\n",
    "cola": "gj04\t1\t\tThe sailors rode.\ngj04\t0\t*\tThe \"weights rope.\n",
    "mrpc": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    "1\t12\t13\tHe said \"yes .\tHe agreed .\n0\t14\t15\tOne .\tTwo .\n",
    "rte": "index\tsentence1\tsentence2\tlabel\n0\tA b .\tC .\tnot_entailment\n"
    "1\tD .\tE .\tentailment\n",
    "qnli": "index\tquestion\tsentence\tlabel\n5\tWho ?\tHe .\tentailment\n",
    "mnli": "index\tgenre\tsentence1\tsentence2\tgold_label\n0\tx\tA .\tB .\tcontradiction\n",
    "trec": "sentence\tlabel\nWhat is it ?\tDESC\nHow many ?\tNUM\n",
}  # fmt: skip
TARGETS = {
    "sst2": [1, 0], "cola": [1, 0], "mrpc": [1, 0], "rte": [1, 0], "qnli": [0], "mnli": [2],
    "trec": [1, 5],
}  # fmt: skip


@pytest.fixture
def glue(tmp_path):
    for name, declared in GLUE.items():
        place = tmp_path / ("glue" if name != "rte" else ".")
        for file in (declared.train, declared.dev):
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(FILES[name], "utf-8")
    return tmp_path


def write_clue(folder, name, labels):
    """Write train and dev of a task with these labels."""
    declared = CLUE[name]
    place = folder / declared.train
    place.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(dict.fromkeys(declared.texts, f"文 {i}") | {"label": label, "id": i}) + "\n"
        for i, label in enumerate(labels)
    ]
    for file in (declared.train, declared.dev):
        (folder / file).write_text("".join(lines), "utf-8")


def write_reviews(folder, name, rows=60):
    """Write the files of a data set, with 7 rows in a separate test file; return that of train."""
    published = REVIEWS[name]
    labels = "|".join(published.labels).split("|")
    files = {published.train: rows}
    if isinstance(published.test, str):
        files[published.test] = 7
    for file, count in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as handle:
            writer = csv.writer(handle, quoting=csv.QUOTE_ALL)
            columns = published.header or ("extra", *published.texts, published.label)
            if published.header is None:
                writer.writerow(columns)
            for row in range(count):
                values = {c: f"{c} {row}, of {file}\\n<br />" for c in columns}
                values[published.label] = labels[row % len(labels)]
                writer.writerow([values[column] for column in columns])
    return folder / published.train


@pytest.mark.parametrize("name", GLUE)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_files_of_glue_are_read_with_their_quotes(glue, name, split):
    found = build_task(name).read(glue, split)
    assert found.targets.tolist() == TARGETS[name]
    assert found.ids == [str(row) for row in range(1, len(found) + 1)]
    assert len(found.texts) == build_task(name).texts
    assert all(text == text.strip() and text for column in found.texts for text in column)
    first = {"sst2": "it 's a charming \" journey .", "mrpc": 'He said "yes .'}
    assert found.texts[0][0] == first.get(name, found.texts[0][0])


@pytest.mark.parametrize("name", CLUE)
def test_every_label_of_clue_is_read(name, tmp_path):
    declared, task = CLUE[name], build_task(name)
    write_clue(tmp_path, name, declared.labels)
    found = task.read(tmp_path, "train")
    assert found.targets.tolist() == list(range(len(declared.labels)))
    assert found.texts[0][1] == "文 1"
    assert len(found.texts) == build_task(name).texts
    assert len(task.kind.class_names) == (0 if name == "iflytek" else task.kind.classes)


@pytest.mark.parametrize(
    ("name", "labels", "targets", "blank"),
    [("afqmc", [1, 0, 1], [1, 0, 1], 0), ("ocnli", ["neutral", "-", "entailment"], [1, 0], 1)],
)
def test_labels_of_clue_may_be_numbers_or_lack_agreement(name, labels, targets, blank, tmp_path):
    write_clue(tmp_path, name, labels)
    found = build_task(name).read(tmp_path, "train")
    assert (found.targets.tolist(), found.blank_rows) == (targets, blank)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("rte", "index\tsentence1\tlabel\n", "line 1: expected a column 'sentence2'"),
        ("rte", FILES["rte"].replace("\tentailment", "\tmaybe"),
         "line 3: label: expected entailment, not_entailment, found 'maybe'"),
        ("sst2", None, r"SST-2.train\.tsv: cannot be read"),
        ("tnews", '\n{"label": "100"}\n', "line 1: expected a column 'sentence', found label"),
        ("msac", "text,label\na,0\nb,awful\n" + "c,1\n" * 20,
         r"MSAC\.csv, line 3: label: expected 0, negative, "),
        ("msac", "text,label\n" + "a,0\n" * 20, "the file is too small: no example is left"),
    ],
)  # fmt: skip
def test_invalid_files_are_refused_with_the_line(tmp_path, name, content, expected):
    task = build_task(name)
    source = task.source.source if name == "msac" else task.source
    file = Path(source.where(tmp_path, "train"))
    if content is not None:
        file.parent.mkdir(parents=True)
        file.write_text(content)
    with pytest.raises(DataError, match=expected):
        task.read(tmp_path, "train" if name != "msac" or "awful" in content else "dev")


@pytest.mark.parametrize("name", REVIEWS)
def test_files_of_reviews_are_split_without_overlap(name, tmp_path):
    published, task = REVIEWS[name], build_task(name)
    own_test = isinstance(published.test, str)
    write_reviews(tmp_path, name)
    splits = {split: task.read(tmp_path, split) for split in SPLITS}
    tested = 7 if own_test else round(60 * published.test)
    held = 0 if own_test else tested
    assert [len(one) for one in splits.values()] == [54 - held, 6, tested]
    if not own_test:
        assert len({i for split in splits.values() for i in split.ids}) == 60
    spelled = [one.split("|") for one in published.labels]
    classes = [place for place, several in enumerate(spelled) for _ in several]
    for split in splits.values():
        file = published.test if own_test and split is splits["test"] else published.train
        for number, text, target in zip(split.ids, *split.texts, split.targets, strict=True):
            row = int(number) - 1
            assert target == classes[row % len(classes)]
            assert text == " ".join(f"{column} {row}, of {file}" for column in published.texts)


def test_cfimdb_has_the_format_of_cs224n(tmp_path):
    rows = "".join(f"{i}\tA{i}\t Long Review {i} \t{i % 2}.0\n" for i in range(4))
    (tmp_path / "ids-cfimdb-dev.csv").write_text(f"\tid\tsentence\tsentiment\n{rows}")
    found = build_task("cfimdb").read(tmp_path, "dev")
    assert found.ids == ["a0", "a1", "a2", "a3"]
    assert found.texts[0][1] == "long review 1"
    assert found.targets.tolist() == [0, 1, 0, 1]
