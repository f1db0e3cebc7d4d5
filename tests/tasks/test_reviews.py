"""Sets of reviews in their usual files: columns, labels, parts, and rows that are never held."""

import csv
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from tasks import build_task
from tasks.catalog import REVIEWS
from tasks.text_files import DataError


def write(folder, name, rows, own_test):
    """The files of a set: one row a review, `rows` of them, and 7 of a test file of its own."""
    declared = REVIEWS[name]
    files = {declared.train: rows} | ({declared.test: 7} if own_test else {})
    labels = list(declared.labels)
    for file, count in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as handle:
            writer = csv.writer(handle, quoting=csv.QUOTE_ALL)
            columns = declared.header or ("extra", *declared.texts, declared.label)
            if declared.header is None:
                writer.writerow(columns)
            for row in range(count):
                values = {c: f"{c} {row}, of {file}\\n<br />" for c in columns}
                values[declared.label] = labels[row % len(labels)]
                writer.writerow([values[column] for column in columns])


@pytest.mark.parametrize("name", REVIEWS)
def test_usual_files_are_parted_without_overlap(name, tmp_path):
    declared, task = REVIEWS[name], build_task(name)
    own_test = isinstance(declared.test, str)
    write(tmp_path, name, 60, own_test)
    splits = {split: task.read(tmp_path, split) for split in ("train", "dev", "test")}
    tested = 7 if own_test else round(60 * declared.test)
    held = 0 if own_test else tested
    assert [len(splits[s]) for s in ("train", "dev", "test")] == [54 - held, 6, tested]
    if not own_test:
        assert len({i for split in splits.values() for i in split.ids}) == 60
    for split in splits.values():
        classes = list(declared.labels.values())
        for number, text, target in zip(split.ids, split.texts[0], split.targets, strict=True):
            row = int(number) - 1
            assert target == classes[row % len(classes)]
            file = declared.test if own_test and split is splits["test"] else declared.train
            assert text == " ".join(f"{column} {row}, of {file}" for column in declared.texts)
    assert len(splits["train"].texts) == 1


def test_a_limit_draws_some_of_the_training_examples(tmp_path):
    write(tmp_path, "yelp5", 60, True)
    task = build_task("yelp5")
    some, every = (task.read(tmp_path, "train", limit) for limit in (10, None))
    assert len(some) == 10
    assert set(some.ids) < set(every.ids)
    assert some.ids == sorted(some.ids, key=int)
    assert not set(some.ids) & set(task.read(tmp_path, "dev").ids)


def test_rows_that_are_not_wanted_are_not_held(tmp_path, monkeypatch):
    write(tmp_path, "yelp2", 60, True)
    source = build_task("yelp2").source.source
    assert len(set(source.hashes(tmp_path, "train").tolist())) == 60
    found = source.select(tmp_path, "train", np.array([3, 5]))
    assert found.ids == ["4", "6"]
    assert len(found.texts[0]) == 2


def test_texts_that_come_several_times_stay_together(tmp_path):
    write(tmp_path, "msac", 60, False)
    file = tmp_path / REVIEWS["msac"].train
    header, *rows = file.read_text().splitlines(keepends=True)
    file.write_text(header + "".join(3 * rows[:30] + rows[30:]))
    task = build_task("msac")
    parts = {split: task.read(tmp_path, split).texts[0] for split in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 120
    assert not any(set(parts[a]) & set(parts[b]) for a, b in combinations(parts, 2))
    assert max(Counter(parts["dev"]).values()) == 3
    file.write_text(header + rows[0] * 20)
    with pytest.raises(DataError, match="expected different texts to split, found each too often"):
        task.read(tmp_path, "dev")


def test_an_unknown_label_and_too_few_rows_are_refused(tmp_path):
    write(tmp_path, "msac", 60, False)
    file = tmp_path / REVIEWS["msac"].train
    text = file.read_text()
    file.write_text(text.replace('"negative"', '"awful"', 1))
    with pytest.raises(DataError, match=r"MSAC\.csv, line 3: label: expected 0, negative, "):
        build_task("msac").read(tmp_path, "train")
    file.write_text("".join(text.splitlines(keepends=True)[:2]))
    with pytest.raises(DataError, match="expected more examples to split, found 1"):
        build_task("msac").read(tmp_path, "train")


def test_cfimdb_is_read_as_cs224n_has_it(tmp_path):
    rows = "".join(f"{i}\tA{i}\t Long Review {i} \t{i % 2}.0\n" for i in range(4))
    (tmp_path / "ids-cfimdb-dev.csv").write_text(f"\tid\tsentence\tsentiment\n{rows}")
    found = build_task("cfimdb").read(tmp_path, "dev")
    assert found.ids == ["a0", "a1", "a2", "a3"]
    assert found.texts[0][1] == "long review 1"
    assert found.targets.tolist() == [0, 1, 0, 1]
