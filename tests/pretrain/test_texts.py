"""Text for pre-training: what is read, what belongs together, what is overlapped."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tasks.sample
from multitask.assembly import assemble
from multitask.config import RunConfig
from pretrain.texts import (
    Texts,
    linked,
    overlap,
    pairs_with_negatives,
    positive_pairs,
    sentences,
    training_sentences,
)
from tasks import CS224N, build_task
from tasks.text_files import DataError

SAMPLE = Path(tasks.sample.__file__).parent


@pytest.mark.parametrize(("names", "limit"), [(("sst",), None), (CS224N, None), (("qqp",), 10)])
def test_every_training_sentence_is_there_once_of_those_that_training_takes(names, limit):
    found = training_sentences(names, SAMPLE, limit)
    read = [build_task(name).read(SAMPLE, "train", limit) for name in names]
    everything = {text for one in read for column in one.texts for text in column}
    assert len(found) == len(set(found))
    assert set(found) == everything - {""}
    columns, groups = sentences(names, {}, SAMPLE, limit)
    assert columns[0] is columns[1], "both views are one list, tokenised once"
    assert len(set(groups)) == len(groups) == len(columns[0])


def test_a_run_trains_on_the_limit_of_each_task():
    limits = {"limit": 10, "dev_limit": 7, "encoder": "tiny"}
    config = RunConfig(mode="pretrain", tasks=CS224N, objective="simcse", **limits)
    _, _, splits = assemble(config)
    assert len(splits["simcse"]["train"].examples) == len(training_sentences(CS224N, SAMPLE, 10))
    assert len(splits["simcse"]["train"].examples) > 30
    assert len(splits["simcse"]["dev"].examples) == 7


def test_pairs_are_those_the_labels_call_the_same():
    (left, right), _ = positive_pairs(("qqp", "sts"), SAMPLE, None)
    expected = []
    for name, at_least in (("qqp", 1), ("sts", 4)):
        examples = build_task(name).read(SAMPLE, "train")
        rows = [i for i, target in enumerate(examples.targets) if target >= at_least]
        expected += [(examples.texts[0][i], examples.texts[1][i]) for i in rows]
    assert list(zip(left, right, strict=True)) == expected


def test_strangers_belong_to_another_group():
    chained = linked(["a", "c", "x", "d"], ["b", "b", "y", "c"])
    assert chained[0] == chained[1] == chained[3] != chained[2]

    def strangers_of(seed):
        pairs = partial(positive_pairs, ("qqp",))
        pool = partial(training_sentences, ("qqp",))
        return pairs_with_negatives(pairs, pool, "files", seed, SAMPLE, None)

    (left, right, strangers), both = strangers_of(0)
    groups, theirs = both.T
    again, others = (strangers_of(seed)[0][2] for seed in (0, 1))
    assert strangers == again != others
    own = dict(zip([*left, *right], [*groups, *groups], strict=True))
    assert all(own.get(s) != group for s, group in zip(strangers, groups, strict=True))
    assert [own.get(s, -1) for s in strangers] == theirs.tolist()
    assert len(set(strangers)) > 20


def test_too_little_text_is_named(tmp_path):
    source = Texts(lambda folder, limit: (([], []), np.array([], np.int64)), "a file")
    with pytest.raises(DataError, match="a file: expected at least two examples, found 0"):
        source.read(tmp_path, "train")


def test_overlap_counts_sentences_whatever_their_case_and_marks():
    dev = build_task("sts").read(SAMPLE, "dev")
    texts = ([dev.texts[0][0].upper() + " !", "a sentence that is nowhere else"],)
    found = overlap(texts, SAMPLE, ["sts"])
    assert found["sts"]["dev"] == 1
    assert overlap((["nothing"],), SAMPLE, ["sst", "qqp"]) == {
        "sst": {"dev": 0, "test": 0},
        "qqp": {"dev": 0, "test": 0},
    }
