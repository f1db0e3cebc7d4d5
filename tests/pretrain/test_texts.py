"""Texts for pre-training: sentences, pairs and NLI triplets, their groups and their overlap."""

import json
import re
from dataclasses import replace
from functools import partial

import pytest

from multitask.assembly import assemble
from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig
from pretrain.pretrain_tasks import overlap_lines
from pretrain.texts import (
    connected_groups,
    distinct_texts,
    overlap,
    pairs_with_negatives,
    positive_pairs,
    read_nli_triplets,
    read_pairs,
    read_texts,
    sentences,
    training_sentences,
)
from tasks import CS224N, TaskOptions, build_task, data_folder
from tasks.text_files import DataError

SAMPLE = data_folder("sample")
PAIRS = "q,a\nq1,a1\nq2,a2\nq3,a1\nq1,a1\n ,a9\nq4,\n"
TRIPLETS = 'sent0,sent1,hard_neg\nA man sleeps.,"A person, asleep",A man runs.\nB,C,D\nB,E,F\n'
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
    found = training_sentences(tasks, SAMPLE, limit)
    read = [task.read(SAMPLE, "train", limit) for task in tasks]
    everything = {text for one in read for column in one.texts for text in column}
    assert len(found) == len(set(found))
    assert set(found) == everything - {""}
    columns, groups = sentences(tasks, SAMPLE, limit)
    assert columns[0] is columns[1], "both views are one list, tokenised once"
    assert len(set(groups)) == len(groups) == len(columns[0])


class Mood(TaskOptions, name="mood"):
    """The sentences of sst under another name."""

    def build(self):
        return replace(build_task("sst"), name="mood")


def test_texts_of_a_users_task_are_read():
    config = RunConfig(mode="pretrain", tasks=(Mood(),), objective="simcse", limit=10)
    config = config.changed(encoder="tiny")
    tasks, _, splits = assemble(config)
    assert len(splits["simcse"]["train"].examples) == 10
    assert len(list(overlap_lines(config, tasks))) == len(CS224N)


def test_the_limit_of_a_run_counts_per_task():
    limits = {"limit": 10, "dev_limit": 7, "encoder": "tiny"}
    config = RunConfig(mode="pretrain", tasks=CS224N, objective="simcse", **limits)
    _, _, splits = assemble(config)
    assert len(splits["simcse"]["train"].examples) == len(
        training_sentences(map(build_task, CS224N), SAMPLE, 10)
    )
    assert len(splits["simcse"]["train"].examples) > 30
    assert len(splits["simcse"]["dev"].examples) == 7


def test_positive_pairs_are_those_with_the_same_meaning_by_their_labels():
    (left, right), _ = positive_pairs(("qqp", "sts"), SAMPLE, None)
    expected = []
    for name, at_least in (("qqp", 1), ("sts", 4)):
        examples = build_task(name).read(SAMPLE, "train")
        rows = [i for i, target in enumerate(examples.targets) if target >= at_least]
        expected += [(examples.texts[0][i], examples.texts[1][i]) for i in rows]
    assert list(zip(left, right, strict=True)) == expected


def test_random_negatives_are_of_another_group():
    chained = connected_groups(["a", "c", "x", "d"], ["b", "b", "y", "c"])
    assert chained[0] == chained[1] == chained[3] != chained[2]
    pairs = partial(positive_pairs, ("qqp",))
    pool = partial(training_sentences, [build_task("qqp")])
    draw = partial(pairs_with_negatives, pairs, pool, "files", folder=SAMPLE, limit=None)
    (left, right, negatives), groups = draw(seed=0)
    again, others = (draw(seed=seed)[0][2] for seed in (0, 1))
    assert negatives == again != others
    group_of = dict(zip([*left, *right], [*groups[:, 0]] * 2, strict=True))
    assert [group_of.get(text, -1) for text in negatives] == groups[:, 1].tolist()
    assert (groups[:, 0] != groups[:, 1]).all()
    assert len(set(negatives)) > 20


def test_overlap_ignores_case_and_punctuation():
    task = build_task("sts")
    dev = task.read(SAMPLE, "dev")
    texts = ([dev.texts[0][0].upper() + " !", "a sentence that is nowhere else", "?!"],)
    known = distinct_texts(texts)
    assert len(known) == 2, "a text without letters counts nowhere"
    assert overlap(known, SAMPLE, task)["dev"] == 1
    assert overlap({"nothing"}, SAMPLE, build_task("sst")) == {"dev": 0, "test": 0}


def test_the_texts_of_a_file_are_distinct_and_not_blank(write):
    file = str(write("one\n\n two \none\n" + "".join(f"more {i}\n" for i in range(20)), "own.txt"))
    (texts, _), groups = read_texts(file, None, SAMPLE, None)
    assert texts == ["one", "two", *(f"more {i}" for i in range(20))]
    assert len(set(groups.tolist())) == 22
    (some, _), groups = read_texts(file, None, SAMPLE, 5)
    assert len(some) == len(groups) == 5
    assert some != texts[:5], "drawn, not the first ones"
    assert set(some) < set(texts)
    with pytest.raises(DataError, match="expected the name of a column"):
        read_texts("own.csv", None, SAMPLE, None)


def test_texts_that_differ_in_case_and_spaces_are_no_negatives(write):
    file = str(write("A film\na film\nother\nA  film\n", "own.txt"))
    (texts, _), groups = read_texts(file, None, SAMPLE, None)
    assert texts == ["A film", "a film", "other", "A  film"]
    assert groups[0] == groups[1] == groups[3] != groups[2]
    with pytest.raises(DataError, match="differ in more than case and spaces, found none"):
        read_texts(str(write("A film\na film\n", "own.txt")), None, SAMPLE, None)
    pairs = str(write("q,a\nx y,b\nX Y,c\nz,d\n"))
    _, groups = read_pairs(pairs, ("q", "a"), SAMPLE, None)
    assert groups[0] == groups[1] != groups[2]


def test_the_pairs_of_a_file_are_distinct_and_grouped_by_shared_texts(write):
    read = partial(read_pairs, str(write(PAIRS)), ("q", "a"))
    (left, right), groups = read(SAMPLE, None)
    assert list(zip(left, right, strict=True)) == [("q1", "a1"), ("q2", "a2"), ("q3", "a1")]
    assert groups[0] == groups[2] != groups[1]
    (left, _, negatives), groups = pairs_with_negatives(read, None, "file", 0, SAMPLE, None)
    group_of = {"q1": 0, "a1": 0, "q2": 1, "a2": 1, "q3": 0}
    assert all(group_of[a] != group_of[b] for a, b in zip(left, negatives, strict=True))
    assert (groups[:, 0] != groups[:, 1]).all()
    assert (groups >= 0).all()


@pytest.mark.parametrize(
    ("name", "content", "limit", "expected"),
    [
        ("p.csv", PAIRS, 1, "found 1 in 6 rows"),
        ("p.csv", "q,b\nx,y\n", None, "line 1: expected a column 'a'"),
        ("p.tsv", "q\ta\nx\ty\nz\ty\n", None, "found all 2 linked by shared texts"),
        ("p.jsonl", '{"q": "x"}\n', None, "p.jsonl, line 1: "),
    ],
)
def test_files_without_two_usable_pairs_are_refused(write, name, content, limit, expected):
    with pytest.raises(DataError, match=re.escape(expected)):
        read_pairs(str(write(content, name)), ("q", "a"), SAMPLE, limit)


@pytest.mark.parametrize(("objective", "columns"), [("pairs", 2), ("ranking", 3), ("triplet", 3)])
def test_objectives_of_pairs_read_both_columns(write, objective, columns):
    rows = [{"q": f"question {n}", "a": f"answer {n}"} for n in range(5)]
    file = write("".join(json.dumps(row) + "\n" for row in rows), "p.jsonl")
    config = RunConfig(objective={"name": objective, "text": str(file), "text_column": ("q", "a")})
    (task,) = build_tasks(config).values()
    texts = task.read(SAMPLE, "train").texts
    assert len(texts) == columns
    assert texts[:2] == ([row["q"] for row in rows], [row["a"] for row in rows])


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "nli.csv",
            TRIPLETS,
            [("a man sleeps .", "a person , asleep", "a man runs ."), ("b", "c", "d"), (*"bef",)],
        ),
        ("nli.tsv", LABELLED, [("one .", "yes", "no"), ("one .", "sure", "never")]),
        (
            "nli.tsv",
            LABELLED.replace("gold_label", "label"),
            [("one .", "yes", "no"), ("one .", "sure", "never")],
        ),
        ("nli.csv", "premise,hypothesis,label\nA,B,0\nA,C,2.0\nA,D,-1\n", [(*"abc",)]),
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


def test_the_limit_draws_triplets(write):
    rows = "".join(f"a{i},b{i},c{i}\n" for i in range(50))
    file = write("sent0,sent1,hard_neg\n" + rows)
    columns, _ = read_nli_triplets(file, 5)
    assert len(columns[0]) == 5
    assert columns == read_nli_triplets(file, 5)[0]
    assert columns[0] != [f"a{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,2\n", "line 1: expected columns sent0, sent1, hard_neg or premise"),
        ("sent0,sent1,hard_neg\n", "expected premises with an entailment and a contradiction"),
        ("premise,hypothesis,label\nA,B,0\n", "expected premises with an entailment and a contra"),
        ("sent0,sent1,hard_neg\na,b\n", "line 2: expected 3 comma-separated fields, found 2"),
    ],
)
def test_invalid_nli_files_are_refused(write, content, expected):
    with pytest.raises(DataError, match=expected):
        read_nli_triplets(write(content))


def test_triplets_are_grouped_by_shared_texts_after_cleaning(write):
    text = "A man.,Someone,No one\na man .,A person,Nothing\nB,A person,C\nD,E,someone\n"
    _, groups = read_nli_triplets(write("sent0,sent1,hard_neg\n" + text))
    assert groups[0, 0] == groups[1, 0] == groups[2, 0] != groups[3, 0]
    assert groups[:, 1].tolist() == [-1, -1, -1, groups[0, 0]]
