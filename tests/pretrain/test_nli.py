"""Entailment files in both layouts, and what is wrong with others."""

import pytest

from pretrain.nli import entailments
from tasks.text_files import DataError

TRIPLETS = 'sent0,sent1,hard_neg\nA man sleeps.,"A person, asleep",A man runs.\nB,C,D\nB,E,F\n'
LABELLED = (
    "gold_label\tsentence1\tsentence2\n"
    "entailment\tOne.\tYes\ncontradiction\tOne.\tNo\nneutral\tOne.\tPerhaps\n"
    "-\tOne.\tNobody knows\nentailment\tTwo.\tAlone\nentailment\tOne.\tSure\n"
    "contradiction\tOne.\tNever\n"
)


def write(folder, text, name="nli.csv"):
    file = folder / name
    file.write_text(text)
    return file


def test_triplets_as_simcse_has_them(tmp_path):
    columns, groups = entailments(write(tmp_path, TRIPLETS))
    assert columns == (
        ["a man sleeps .", "b", "b"],
        ["a person , asleep", "c", "e"],
        ["a man runs .", "d", "f"],
    )
    assert groups[1, 0] == groups[2, 0] != groups[0, 0]
    assert groups[:, 1].tolist() == [-1, -1, -1]


@pytest.mark.parametrize("label", ["gold_label", "label"])
def test_labelled_pairs_make_a_triplet_of_each_entailment_and_contradiction(tmp_path, label):
    file = write(tmp_path, LABELLED.replace("gold_label", label), "nli.tsv")
    columns, groups = entailments(file)
    assert columns == (["one .", "one ."], ["yes", "sure"], ["no", "never"])
    assert groups[0, 0] == groups[1, 0]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nli.csv", "premise,hypothesis,label\nA,B,0\nA,C,2.0\nA,D,-1\n", ("a", "b", "c")),
        # Triplets in which two texts are the same, or one is empty, teach nothing.
        ("nli.csv", "sent0,sent1,hard_neg\na,b,A\na,b,\nc,d,D\ne,f,g\n", ("e", "f", "g")),
        # Quotation marks between tabs are text.
        (
            "nli.tsv",
            'premise\thypothesis\tlabel\n"Go," he said\t"A"\t0\n"Go," he said\tB"\t2\n',
            ('"go ," he said', '"a"', 'b"'),
        ),
    ],
)
def test_the_one_triplet_of_a_file(tmp_path, name, text, expected):
    columns, _ = entailments(write(tmp_path, text, name))
    assert columns == tuple([one] for one in expected)


def test_the_limit_draws_triplets(tmp_path):
    rows = "".join(f"a{i},b{i},c{i}\n" for i in range(50))
    file = write(tmp_path, "sent0,sent1,hard_neg\n" + rows)
    columns, _ = entailments(file, 5)
    assert len(columns[0]) == 5
    assert columns == entailments(file, 5)[0]
    assert columns[0] != [f"a{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "line 1: expected columns sent0, sent1, hard_neg or premise"),
        ("sent0,sent1,hard_neg\n", "expected rows under a header line, found none"),
        ("premise,hypothesis,label\nA,B,maybe\n", "line 2: label: expected entailment"),
        ("sent0,sent1,hard_neg\na,b\n", "line 2: expected 3 comma-separated fields, found 2"),
    ],
)
def test_faults_are_named(tmp_path, text, expected):
    with pytest.raises(DataError, match=expected):
        entailments(write(tmp_path, text))


def test_texts_that_belong_together_are_of_one_group_in_any_place(tmp_path):
    """Cleaned alike, sharing what follows, or another premise's contradiction."""
    text = "A man.,Someone,No one\na man .,A person,Nothing\nB,A person,C\nD,E,someone\n"
    _, groups = entailments(write(tmp_path, "sent0,sent1,hard_neg\n" + text))
    assert groups[0, 0] == groups[1, 0] == groups[2, 0] != groups[3, 0]
    assert groups[:, 1].tolist() == [-1, -1, -1, groups[0, 0]]
