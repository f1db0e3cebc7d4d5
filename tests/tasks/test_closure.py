"""The closure of duplicates: against a fixpoint over all pairs, and what it leaves out."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from multitask.config_tasks import build_tasks
from multitask.run import make_trainer
from multitask.settings.config import RunConfig
from tasks import build_task, data_folder
from tasks.closure import extended, with_closure
from tasks.protocols import FewShots, HeldOutTenth, apply_protocol
from tasks.readers import Examples
from tasks.splits import keys
from tests.tasks.sources import Given

FOLDER = Path()


def examples(*rows):
    """Pairs written as `a=b` for duplicates and `a!b` for others."""
    found = [row.replace("=", "!").split("!") for row in rows]
    columns = tuple(map(list, zip(*found, strict=True)))
    return Examples(list(map(str, range(len(rows)))), columns, np.array(["=" in r for r in rows]))


def written(given, begin=0):
    """Pairs as in `examples`, from a row on, each in alphabetic order."""
    rows = zip(*given.texts, given.targets, strict=True)
    return {"!="[int(same)].join(sorted(pair)) for *pair, same in list(rows)[begin:]}


def closed(given):
    """Everything that follows from the labels, found by applying two rules until nothing is new."""
    pairs = {frozenset(p): bool(s) for *p, s in zip(*given.texts, given.targets, strict=True)}
    texts = sorted({text for pair in pairs for text in pair})
    linked = {pair for pair, same in pairs.items() if same}

    def spread(some, over):
        """Replace a text of a pair by a duplicate, until no pair is new."""
        while True:
            new = {
                (one ^ other)
                for one in some
                for other in over
                if len(one & other) == 1 and len(one) == len(other) == 2
            } - some
            if not new:
                return some
            some = some | new

    linked = spread(linked, linked)
    wrong = {pair for pair, same in pairs.items() if not same and pair in linked}
    banned = {text for pair in wrong for text in pair}
    banned |= {text for pair in linked if pair & banned for text in pair}
    linked = {pair for pair in linked if not pair & banned}
    apart = {pair for pair, same in pairs.items() if not same and not pair & banned}
    apart = spread(apart, linked) if linked else apart
    every = {frozenset(pair) for pair in combinations(texts, 2)}
    return linked & every - pairs.keys(), apart & every - pairs.keys()


@pytest.mark.parametrize("seed", range(40))
def test_further_pairs_are_those_that_follow_from_the_labels(seed):
    draw = np.random.default_rng(seed)
    pairs = [pair for pair in combinations("abcdefghij", 2) if draw.random() < 0.2]
    rows = [draw.choice(["=", "!"]).join(pair) for pair in pairs] or ["a=b"]
    given = examples(*rows)
    positives, negatives = (
        {("=", "!")[n].join(sorted(p)) for p in s} for n, s in enumerate(closed(given))
    )
    for closure, expected in (
        ("positives", positives),
        ("negatives", negatives),
        ("all", positives | negatives),
    ):
        found = extended(given, set(), closure)
        assert written(found, len(given)) == expected
        assert len(found) == len(given) + len(expected), "each pair once"
        assert found.texts[0][: len(given)] == given.texts[0]
        assert found.targets.dtype == given.targets.dtype
        assert len(set(found.ids)) == len(found)


def test_a_component_that_contradicts_itself_is_not_extended_and_counted():
    found = extended(examples("a=b", "b=c", "a!c", "d!a", "d=e", "f=g", "g=h"), set(), "all")
    assert written(found, 7) == {"f=h"}
    assert found.notices == (
        "1 further positive and 0 further negative pairs from the closure, without 0 of dev or "
        "test; components with contradictory labels, not extended: 1",
    )


def test_pairs_of_dev_and_test_are_left_out_in_either_order_and_counted():
    train = examples("who=which", "which=what", "what!why")
    texts = {"train": train.texts, "dev": (["What?"], ["WHO"]), "test": (["why"], ["which"])}
    source = with_closure(Given(texts), (Given({"test": (["Why"], ["who."])}),), "all")
    found = replace(source.source.read(FOLDER, "train"), targets=train.targets)
    held = {key for split in ("dev", "test") for key in keys(source.read(FOLDER, split))}
    assert len(extended(found, set(), "all")) == 6
    assert written(extended(found, held, "all"), 3) == {"who!why"}
    assert "without 2 of dev or test" in extended(found, held, "all").notices[0]
    labelled = Labelled(texts, targets=train.targets)
    assert len(replace(source, source=labelled).read(FOLDER, "train")) == 3, "also of others"
    assert len(with_closure(labelled, (), "all").read(FOLDER, "train")) == 4


class Labelled(Given):
    """Splits of texts with the labels of train."""

    def __init__(self, texts, targets):
        super().__init__(texts)
        object.__setattr__(self, "labels", targets)

    def read(self, folder, split, limit=None):
        found = super().read(folder, split)
        found = replace(found, targets=self.labels) if split == "train" else found
        return found.sample(limit)


SAMPLE = RunConfig(tasks=("qqp",), task_options={"qqp": {"closure": "all"}}, encoder="tiny")


def read(config, limit=None):
    return build_tasks(config)["qqp"].read(data_folder("sample"), "train", limit)


def test_a_limit_counts_all_training_pairs():
    whole, plain = read(SAMPLE), read(SAMPLE.changed(task_options={}))
    assert len(whole) > len(plain)
    part = read(SAMPLE, 50)
    assert (len(part), part.available) == (50, len(whole))
    assert part.texts == whole.sample(50).texts


def test_the_closure_follows_from_the_training_pairs_that_a_protocol_leaves():
    task, folder = build_task("qqp", closure="all"), data_folder("sample")
    for protocol in (HeldOutTenth(), FewShots(40)):
        source = apply_protocol(task, protocol, 1)
        plain = apply_protocol(build_task("qqp"), protocol, 1).read(folder, "train")
        found = source.read(folder, "train")
        assert found.ids[: len(plain)] == plain.ids
        assert set(plain.texts[0]) | set(plain.texts[1]) >= set(found.texts[0]), "no new text"
        held = {key for split in ("dev", "test") for key in keys(source.read(folder, split))}
        assert not held & set(keys(found.select(np.arange(len(plain), len(found)))))


def test_a_run_prints_the_counts_and_samples_by_the_size_with_further_pairs(tmp_path, capsys):
    config = RunConfig(
        tasks=("sst", "qqp"),
        task_options={"qqp": {"closure": "positives"}},
        encoder="tiny",
        sampling="proportional",
        limit={"qqp": 100},
    )
    trainer = make_trainer(config, tmp_path)
    whole = read(SAMPLE.changed(task_options=config.task_options))
    assert f"qqp: {whole.notices[0]}\n" in capsys.readouterr().out
    split = trainer.splits["qqp"]["train"].examples
    assert (len(split), split.available) == (100, len(whole))
