"""GLUE's own files: columns, labels by name, quotes that stay, and what is wrong with one."""

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

from minbert.bi_encoder import BiEncoder
from tasks import DECLARED, MANY_CLASSES, PAIRS, TASK_NAMES, build_task
from tasks.built_in import declared_task
from tasks.catalog import GLUE, Declared
from tasks.data import load_split
from tasks.text_files import DataError

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
def folder(tmp_path):
    for name, declared in GLUE.items():
        place = tmp_path / ("glue" if name != "rte" else ".") / declared.folder
        place.mkdir(parents=True)
        for file in ("train.tsv", declared.dev):
            (place / file).write_text(FILES[name], "utf-8")
    return tmp_path


@pytest.mark.parametrize("name", GLUE)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_files_are_read_as_they_are_and_quotes_stay(folder, name, split):
    found = build_task(name).read(folder, split)
    assert found.targets.tolist() == TARGETS[name]
    assert found.ids == [str(row) for row in range(1, len(found) + 1)]
    assert len(found.texts) == (2 if name in PAIRS else 1)
    assert all(text == text.strip() and text for column in found.texts for text in column)
    first = {"sst2": "it 's a charming \" journey .", "mrpc": 'He said "yes .'}
    assert found.texts[0][0] == first.get(name, found.texts[0][0])


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("rte", "index\tsentence1\tlabel\n", "line 1: expected a column 'sentence2'"),
        ("rte", FILES["rte"].replace("\tentailment", "\tmaybe"),
         "line 3: label: expected entailment, not_entailment, found 'maybe'"),
        ("trec", FILES["trec"] + "One\ttwo\tthree\n", "line 4: expected 2 tab-separated fields"),
        ("cola", "gj04\t1\tone too few\n", "line 1: expected 4 tab-separated fields, found 3"),
        ("sst2", "sentence\tlabel\n", "expected at least one example"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_line(folder, name, content, expected):
    task = build_task(name)
    task.source.file(folder, "train").write_text(content)
    with pytest.raises(DataError, match=expected):
        task.read(folder, "train")


def test_a_missing_task_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"SST-2.train\.tsv: expected a data file"):
        build_task("sst2").read(tmp_path, "train")


def test_a_pair_in_one_sequence_or_two(folder):
    tokenizer = BiEncoder.from_pretrained("tiny").tokenizer
    two = load_split(build_task("mrpc"), folder, "dev", tokenizer)
    one = load_split(build_task("mrpc", pair="joint"), folder, "dev", tokenizer)
    assert (len(two.tokens), len(one.tokens)) == (2, 1)
    # [CLS] a [SEP] b [SEP]: a [CLS] less than apart
    expected = sum(tokens.lengths for tokens in two.tokens) - 1
    np.testing.assert_array_equal(one.lengths, expected)
    assert one.batch(np.array([0])).segments.tolist()[-1] == 1


def test_metrics():
    draw = np.random.default_rng(0)
    predictions, targets = draw.integers(2, size=(2, 50))
    found = build_task("cola").kind.metrics(predictions, targets)
    assert found["matthews"] == pytest.approx(matthews_corrcoef(targets, predictions))
    assert list(found) == ["accuracy", "f1", "matthews"]
    assert "macro_f1" in build_task("trec").kind.metrics(predictions, targets)
    assert build_task("cola").kind.metrics(np.zeros(50), targets)["matthews"] == 0


def test_a_csv_is_declared_in_a_line(tmp_path, monkeypatch):
    own = Declared("mine", ("text",), "mood", ("bad", "good"), train="a.csv", dev="b.csv")
    monkeypatch.setitem(DECLARED, "mine", own)
    (tmp_path / "mine").mkdir()
    for file in ("a.csv", "b.csv"):
        (tmp_path / "mine" / file).write_text('mood,text\ngood,"so, ""fine"""\nbad,no\n')
    found = declared_task("mine").read(tmp_path, "train")
    assert found.texts == (['so, "fine"', "no"],)
    assert found.targets.tolist() == [1, 0]


def test_tasks_of_many_classes_are_listed():
    many = {name for name in TASK_NAMES if (build_task(name).kind.classes or 0) > 2}
    assert many - set(MANY_CLASSES) == {"sst"}


@pytest.mark.parametrize("name", MANY_CLASSES)
def test_only_the_first_classes(name, folder):
    assert build_task(name).kind.classes == MANY_CLASSES[name]
    task = build_task(name, classes="2")
    assert task.kind.classes == 2
    assert len(task.kind.class_names) == (0 if name == "iflytek" else 2)
    if name == "trec":
        assert task.read(folder, "train").targets.tolist() == [1]
