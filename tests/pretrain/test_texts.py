"""Texts for pre-training: sentences, pairs and NLI triplets, their groups and their overlap."""

import pytest

from multitask.assembly import assemble
from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig
from pretrain.pretrain_tasks import distinct_texts, overlap_lines
from pretrain.texts import (
    file_texts,
    positive_pairs,
    read_nli_triplets,
    sentences,
)
from tasks import CS224N, build_task, data_folder
from tasks.readers import Examples
from tasks.tables import DataError

SAMPLE = data_folder("sample")
PAIRS = "q,a\nq1,a1\nq2,a2\nq3,a1\nq1,a1\n ,a9\nq4,\n"
TRIPLETS = 'sent0,sent1,hard_neg\nA man sleeps.,"A person, asleep",A man runs.\nB,C,D\nB,E,F\n'
NLI = "premise,hypothesis,label\n"
LABELLED = (
    "gold_label\tsentence1\tsentence2\n"
    "entailment\tOne.\tYes\ncontradiction\tOne.\tNo\nneutral\tOne.\tPerhaps\n"
    "-\tOne.\tNobody knows\nentailment\tTwo.\tAlone\nentailment\tOne.\tSure\n"
    "contradiction\tOne.\tNever\n"
)


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="file.csv"):
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write_file


@pytest.mark.parametrize(("names", "limit"), [(("sst",), None), (CS224N, None), (("qqp",), 10)])
def test_every_training_sentence_within_the_limit_is_read_once(names, limit):
    tasks = [build_task(name) for name in names]
    (found, other), groups = sentences(tasks, SAMPLE, limit)
    read = [task.read(SAMPLE, "train", limit) for task in tasks]
    everything = {text for one in read for column in one.texts for text in column}
    assert set(found) == everything - {""}
    assert other is found, "both views are one list, tokenised once"
    assert len(set(groups)) == len(groups) == len(set(found)) == len(found)


def test_the_limit_of_a_run_counts_per_task():
    limits = {"limit": 10, "dev_limit": 7, "encoder": "tiny"}
    config = RunConfig(mode="pretrain", tasks=CS224N, objective="simcse", **limits)
    _, _, splits = assemble(config)
    (every, _), _ = sentences(map(build_task, CS224N), SAMPLE, 10)
    assert len(splits["simcse"]["train"].examples) == len(every) > 30
    assert len(splits["simcse"]["dev"].examples) == 7


def test_positive_pairs_are_those_with_the_same_meaning_by_their_labels():
    (left, right), _ = positive_pairs(("qqp", "sts"), SAMPLE, None)
    expected = []
    for name, at_least in (("qqp", 1), ("sts", 4)):
        examples = build_task(name).read(SAMPLE, "train")
        rows = [i for i, target in enumerate(examples.targets) if target >= at_least]
        expected += [(examples.texts[0][i], examples.texts[1][i]) for i in rows]
    assert list(zip(left, right, strict=True)) == expected


def test_overlap_ignores_case_and_punctuation(write):
    similar = build_task("sts").read(SAMPLE, "dev").texts[0][0]
    file = write(f"{similar.upper()} !\na sentence that is nowhere else\n?!\n", "own.txt")
    config = RunConfig(objective={"name": "simcse", "data_file": str(file)})
    _, sst, _, sts = overlap_lines(config, build_tasks(config))
    assert sst == "sentences of sst that the training text contains: 0 of dev, 0 of test"
    assert sts == "sentences of sts that the training text contains: 1 of dev, 0 of test"
    assert len(distinct_texts([Examples(["1"], (["A b", "a, b", "?!"],), None)])) == 1


def test_the_texts_of_a_file_are_distinct_and_not_blank(write):
    file = str(write("one\n\n two \none\n" + "".join(f"more {i}\n" for i in range(20)), "own.txt"))
    (texts, other), groups = file_texts(file, (), SAMPLE, None)
    assert texts is other
    assert texts == ["one", "two", *(f"more {i}" for i in range(20))]
    assert len(set(groups.tolist())) == 22
    (some, _), groups = file_texts(file, (), SAMPLE, 5)
    assert len(some) == len(groups) == 5
    assert some != texts[:5], "drawn, not the first ones"
    assert set(some) < set(texts)
    with pytest.raises(DataError, match="name the column of the texts"):
        file_texts("own.csv", (), SAMPLE, None)


def test_texts_that_differ_in_case_and_spaces_are_no_negatives(write):
    file = str(write("A film\na film\nother\nA  film\n", "own.txt"))
    (texts, _), groups = file_texts(file, (), SAMPLE, None)
    assert texts == ["A film", "a film", "other", "A  film"]
    assert groups[0] == groups[1] == groups[3] != groups[2]
    _, groups = file_texts(str(write("q,a\nx y,b\nX Y,c\nz,d\n")), ("q", "a"), SAMPLE, None)
    assert groups[0] == groups[1] != groups[2]


def test_the_pairs_of_a_file_are_distinct_and_grouped_by_shared_texts(write):
    (left, right), groups = file_texts(str(write(PAIRS)), ("q", "a"), SAMPLE, None)
    assert list(zip(left, right, strict=True)) == [("q1", "a1"), ("q2", "a2"), ("q3", "a1")]
    assert groups[0] == groups[2] != groups[1]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("p.csv", "q,b\nx,y\n", "line 1: expected a column 'a'"),
        ("p.tsv", "q\ta\nx\ty\nz\ty\n", "two examples that share no text .*, found none among 2"),
        ("s.txt", "A film\na  film\n", "found none among 2"),
        ("nli.csv", "a,b\n1,2\n", "line 1: expected a column 'sent0', found a, b"),
        ("nli.csv", f"{NLI}A,B,0\n", "training needs two examples that share no text"),
        ("nli.csv", f"{NLI}A,B,0\nA,C,3\n", "line 3: label: expected entailment, 0"),
    ],
)
def test_files_without_two_usable_texts_are_refused(write, name, content, expected):
    file = str(write(content, name))
    objectives = {
        "p": {"name": "pairs", "data_file": file, "text": ("q", "a")},
        "s": {"name": "simcse", "data_file": file},
        "n": {"name": "nli", "nli": file},
    }
    (task,) = build_tasks(RunConfig(objective=objectives[name[0]])).values()
    with pytest.raises(DataError, match=expected):
        task.read(SAMPLE, "train")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "nli.csv",
            TRIPLETS,
            [("a man sleeps .", "a person , asleep", "a man runs ."), ("b", "c", "d"), (*"bef",)],
        ),
        ("nli.tsv", LABELLED, [("one .", "yes", "no"), ("one .", "sure", "never")]),
        ("nli.csv", f"{NLI}A,B,0\nA,C,2.0\nA,D,-1\n", [(*"abc",)]),
        # Triplets with two equal texts or a blank one are skipped.
        ("nli.csv", "sent0,sent1,hard_neg\na,b,A\na,b,\nc,d,D\ne,f,g\n", [(*"efg",)]),
        # Quotation marks between tabs are text.
        (
            "nli.tsv",
            'premise\thypothesis\tlabel\n"Go," he said\t"A"\t0\n"Go," he said\tB"\t2\n',
            [('"go ," he said', '"a"', 'b"')],
        ),
    ],
)
def test_nli_files_give_triplets(write, name, content, expected):
    columns, groups = read_nli_triplets(write(content, name))
    assert list(zip(*columns, strict=True)) == expected
    assert (groups[:, 0] == groups[-1, 0]).sum() == min(2, len(expected))
    assert (groups[:, 1] == -1).all()


def test_triplets_are_grouped_by_shared_texts_after_cleaning(write):
    text = "A man.,Someone,No one\na man .,A person,Nothing\nB,A person,C\nD,E,someone\n"
    _, groups = read_nli_triplets(write("sent0,sent1,hard_neg\n" + text))
    assert groups[0, 0] == groups[1, 0] == groups[2, 0] != groups[3, 0]
    assert groups[:, 1].tolist() == [-1, -1, -1, groups[0, 0]]
