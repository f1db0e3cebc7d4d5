"""Predictions of MultiTaskModel equal those of its run."""

import numpy as np
import pytest
from pandas import DataFrame
from tolerances import assert_near, model_terms

import cli
from common.errors import Notice, UserError
from multitask import task
from serving import load
from serving.prediction import prediction
from serving.server import answer
from tasks import build_task, data_folder
from tasks.predictions import read_scores, scores_name


def dev(task):
    return build_task(task).read(data_folder("sample"), "dev")


@pytest.mark.parametrize("task", ["sst", "qqp", "sts"])
def test_predictions_equal_those_of_the_run(model, trained, task):
    kept = read_scores(trained / "predictions" / scores_name(task, "dev"))
    columns = dev(task).texts
    texts = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    found = model.predict(texts, [task])[task]
    values = found.values if found.probabilities is None else found.probabilities
    assert_near(values, kept.values, model_terms(model))


def test_pairs_are_predicted_by_all_heads(model):
    found = model.predict([("A cat sleeps.", "A cat is asleep."), ("The sun.", "The moon.")])
    assert set(found) == {"sst", "qqp", "sts", "own"}
    assert set(found["own"].labels) <= {"same", "not"}
    assert found["qqp"].probabilities.shape == (2, 2)
    assert found["sts"].probabilities is None
    assert_near(found["sst"].probabilities.sum(1), [1, 1], 2 * 5)  # rounded, and added up
    alone = model.predict(["A cat sleeps.", "The sun."])
    assert set(alone) == {"sst"}
    assert_near(alone["sst"].probabilities, found["sst"].probabilities, model_terms(model))


def test_a_prediction_has_the_label_and_its_number_and_the_index_is_called_so(tmp_path):
    rows, nothing = [f"text {n}" for n in range(40)], np.zeros(2, bool)
    for labels, values in (([1, 2, 3, 4], [2, 4]), (["no", "so", "up", "yes"], ["so", "yes"])):
        own = task(rows, labels * 10, folder=tmp_path).build()
        found = prediction(own, np.eye(4, dtype=np.float32)[[1, 3]], nothing, nothing, None)
        assert found.labels == [str(one) for one in values]
        assert found.values.tolist() == values
        assert found.index.tolist() == [1, 3]
        answered = answer(own, found, 1)
        assert [answered[key] for key in ("label", "value", "index")] == [
            *map(str, values[1:]),
            values[1],
            3,
        ]
    own = task(rows, [n / 2 for n in range(40)], folder=tmp_path).build()
    found = prediction(own, np.array([1.5, 2.0], np.float32), nothing, nothing, None)
    assert (found.labels, found.values.tolist(), found.index) == (["1.5", "2.0"], [1.5, 2.0], None)


def test_empty_input(model):
    found = model.predict([])["sst"]
    assert found.labels == []
    assert found.probabilities.shape == (0, 5)


INVALID = [
    (["a"], {"tasks": ["mnli"]}, "task: expected one of sst, qqp, sts, own, found mnli"),
    (["a"], {"tasks": ["qqp"]}, "qqp: give pairs of texts, not single texts"),
    ("a", {}, "expected a list of texts or pairs, found a str"),
    (DataFrame({"one": ["a"], "two": ["b"]}), {}, "expected a list of texts or pairs, found a"),
    ([("a", "b", "c")], {}, "only texts or only pairs, found 3 in a row"),
    (["a", float("nan")], {}, "expected strings, found nan at index 1"),
    (["a", ("b", "c")], {}, "only texts or only pairs, found 1 and 2 in a row"),
]


@pytest.mark.parametrize(("rows", "options", "line"), INVALID)
def test_invalid_requests_are_refused(model, rows, options, line):
    with pytest.raises((UserError, TypeError), match=line):
        model.predict(rows, **options)


def test_a_head_that_pools_tokens_itself(tmp_path):
    run = tmp_path / "run"
    flags = ("--mode", "single", "--task", "sst", "--objective", "lacon-fusion", "--epochs", "1")
    size = ("--limit", "40", "--encoder", "tiny", "--batch-size", "10")
    assert cli.main([*flags, *size, "--output", str(run)]) == 0
    kept = read_scores(run / "predictions" / scores_name("sst", "dev"))
    model = load(run)
    found = model.predict(dev("sst").texts[0])["sst"]
    assert_near(found.probabilities, kept.values, model_terms(model))


def test_truncated_rows_are_counted_in_one_warning(model, monkeypatch):
    monkeypatch.setattr("serving.model.WINDOW", 2)
    limit = model.model.bi_encoder.tokenizer.max_tokens
    half, longer = "a " * (limit // 2), "a " * limit
    # The first is too long for the head of joint pairs only.
    rows = [(half, half), ("a", "b"), ("a", longer), (longer, longer), ("a", "b")]
    expected = f"3 of 5 rows are longer than {limit} tokens and were cut"
    with pytest.warns(Notice) as caught:
        model.predict(rows)
    assert [str(one.message) for one in caught] == [expected]
    assert caught[0].filename == __file__
    with pytest.warns(Notice, match="1 of 5 rows is longer"):
        model.predict(rows, ["sst"])
