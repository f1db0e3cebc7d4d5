"""Silver pairs in training: how they join gold examples, and that none is of dev or test."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import tasks.sample
from common.errors import SettingsError
from multitask import RunConfig
from multitask.config_tasks import plain_tasks
from tasks import data_folder
from tasks.own_tasks import task as own_task
from tasks.readers import limit_of
from tasks.silver import held_out_texts, provenance_file
from tasks.text_files import DataError

SAMPLE = Path(tasks.sample.__file__).parent
HEADER = ["sentence1", "sentence2", "similarity"]
ROWS = [["a cow sings", "a goat sings", "2.5"], ["a cow naps", "a goat naps", "4.0"]]


def rows_of(name):
    with (SAMPLE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture
def silver(tmp_path):
    """Write silver pairs, by default of sts, and return their file."""

    def write(rows=ROWS, task="sts", header=HEADER, name="silver.csv"):
        file = tmp_path / name
        with file.open("w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows([header, *rows])
        provenance_file(file).write_text(json.dumps({"task": task}))
        return str(file)

    return write


def train_of(config, name):
    limit = limit_of(config.limit, name)
    return plain_tasks(config)[name].read(data_folder(config.data), "train", limit)


def config_of(*files, tasks=("sts",), **changes):
    return RunConfig(tasks=tasks, encoder="tiny", silver=files, **changes)


def test_silver_pairs_follow_the_gold_ones(silver):
    gold, both = (train_of(config_of(*f), "sts") for f in ((), (silver(),)))
    assert both.ids == [*gold.ids, "silver-1", "silver-2"]
    for gold_texts, texts, added in zip(
        gold.texts, both.texts, zip(*ROWS, strict=True), strict=False
    ):
        assert texts == [*gold_texts, *added]
    assert np.array_equal(both.targets, np.float32([*gold.targets, 2.5, 4.0]))
    # A limit counts gold examples; the silver ones are added to those.
    limited = train_of(config_of(silver(), limit=10), "sts")
    assert (len(limited), limited.available) == (12, len(both))
    # What there is to say about the gold examples is still said.
    implied = {"tasks": ("qqp",), "task_options": {"qqp": {"closure": "all"}}}
    header = ["sentence1", "sentence2", "is_duplicate"]
    questions = silver([["why a cow ?", "why a goat ?", "0.0"]], "qqp", header, "questions.csv")
    one, other = (train_of(config_of(*files, **implied), "qqp") for files in ((), (questions,)))
    assert len(one.notices) == 1
    assert other.notices == one.notices
    for split in ("dev", "test"):
        sources = [plain_tasks(config_of(*f))["sts"] for f in ((), (silver(),))]
        one, other = (task.read(data_folder("sample"), split) for task in sources)
        assert one.texts == other.texts


def test_each_file_is_for_its_task(silver):
    duplicates = silver(
        [["why is the cow tired ?", "why does the cow sleep ?", "1.0"]],
        task="qqp",
        header=["sentence1", "sentence2", "is_duplicate"],
        name="more.tsv",
    )
    Path(duplicates).write_text(Path(duplicates).read_text().replace(",", "\t"))
    config = config_of(silver(), duplicates, tasks=("sst", "qqp", "sts"))
    plain = config.changed(silver=())
    added = {n: len(train_of(config, n)) - len(train_of(plain, n)) for n in config.tasks}
    assert added == {"sst": 0, "qqp": 1, "sts": 2}
    with pytest.raises(DataError, match="expected silver pairs of sts, found those of qqp"):
        train_of(config_of(duplicates), "sts")


HELD = [
    (stem, split, side)
    for stem in ("sts", "quora", "ids-sst")
    for split in ("dev", "test-student")
    for side in ((0,) if stem == "ids-sst" else (0, 1))
]


@pytest.mark.parametrize(("stem", "split", "side"), HELD, ids=str)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("way", ["silver", "own task"])
def test_a_pair_with_a_text_of_dev_or_test_is_refused_or_dropped(
    silver, stem, split, side, place, way
):
    """Of any CS224N task, also one that the run does not train; case and marks do not matter."""
    row = rows_of(f"{stem}-{split}.csv")[7]
    column = "sentence" if stem == "ids-sst" else HEADER[side]
    planted = ["a cow sings", "a goat sings", "1.0"]
    planted[place] = row[column].upper() + " !"
    file = silver([*ROWS, planted, *ROWS])
    if way == "silver":
        config, name, kept = config_of(file), "sts", 180 + 4
    else:
        dev = SAMPLE / "sts-dev.csv"
        options = f"dev={dev},type=similarity,text=sentence1,text=sentence2,label=similarity"
        mine = own_task(f"mine={file}:{options},low=0,high=5")
        config, name, kept = config_of(tasks=("sst", mine)), "mine", 4
    line = r"silver\.csv, row 3: expected silver pairs without texts of dev or test, found one of"
    with pytest.raises(DataError, match=line) as error:
        train_of(config, name)
    # A text may be in both dev and test.
    assert re.search(rf"{stem}-(dev|test-student)\.csv: '", str(error.value))
    assert "\n" not in str(error.value)
    found = train_of(config.changed(drop_leaks=True), name)
    gold = train_of(config_of(drop_leaks=True), "sts") if way == "silver" else None
    assert len(found) == (kept if gold is None else len(gold) + 4)
    assert found.leaked == 1 + (gold.leaked if gold else 0)


def test_dev_of_an_own_task_is_held_out_too(silver, tmp_path):
    pairs = [(f"cow {row}", f"goat {row}") for row in range(60)]
    mine = own_task(pairs, [row % 6 + 0.5 for row in range(60)], name="cows", folder=tmp_path)
    config = RunConfig(tasks=(mine, "sts"), encoder="tiny")
    (dev,) = plain_tasks(config)["cows"].read(Path(), "dev").texts[0][:1]
    file = silver([["a cow sings", dev, "1.0"]])
    with pytest.raises(DataError, match="row 1: expected silver pairs without texts of dev or t"):
        train_of(config.changed(silver=(file,)), "sts")
    (train,) = train_of(config, "cows").texts[0][:1]
    assert len(train_of(config.changed(silver=(silver([["a cow", train, "1.0"]]),)), "sts")) == 181


def test_parts_of_a_silver_file_are_not_held_out(silver):
    """A single file of silver pairs has its own dev and test, which are no gold examples."""
    rows = [[f"cow {row % 9}", f"goat {row}", f"{row % 5}.5"] for row in range(40)]
    options = "type=similarity,text=sentence1,text=sentence2,label=similarity"
    mine = own_task(f"mine={silver(rows)}:{options}")
    config = RunConfig(tasks=("sts", mine), encoder="tiny")
    assert len(train_of(config, "mine")) == 32
    assert held_out_texts([plain_tasks(config)["mine"].source], Path()) == {}


def test_files_that_are_not_silver_are_refused(silver, tmp_path):
    file = silver()
    provenance_file(Path(file)).write_text("[]")
    with pytest.raises(DataError, match="expected a JSON object"):
        train_of(config_of(file), "sts")
    provenance_file(Path(file)).unlink()
    with pytest.raises(DataError, match=r"silver.csv.provenance.json beside it, from --mode mine"):
        train_of(config_of(file), "sts")
    with pytest.raises(DataError, match="expected a number from 0 to 5, found '7'"):
        train_of(config_of(silver([["a", "b", "7"]])), "sts")
    with pytest.raises(SettingsError, match="silver: expected mode single or multitask, found pre"):
        RunConfig(mode="pretrain", objective="simcse", tasks=("sst",), silver=("x.csv",))


def test_pairs_of_classes_that_the_run_leaves_out_are_left_out(silver, tmp_path):
    header = ["premise", "hypothesis", "label"]
    folder = tmp_path / "glue" / "MNLI"
    folder.mkdir(parents=True)
    head = "sentence1\tsentence2\tgold_label\n"
    labels = ("entailment", "neutral", "contradiction")
    for name in ("train", "dev_matched"):
        lines = [f"{name} {row}\tother {name} {row}\t{labels[row % 3]}\n" for row in range(9)]
        (folder / f"{name}.tsv").write_text(head + "".join(lines))
    header = ["sentence1", "sentence2", "gold_label"]
    file = silver([[f"cow {one}", "a goat", one] for one in labels], "mnli", header)
    options = {"tasks": ("mnli",), "data": str(tmp_path)}
    assert train_of(config_of(file, **options), "mnli").targets[-3:].tolist() == [0, 1, 2]
    two = train_of(config_of(file, task_options={"mnli": {"classes": "2"}}, **options), "mnli")
    assert two.targets[-2:].tolist() == [0, 1]
    assert two.targets.max() == 1
