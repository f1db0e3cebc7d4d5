"""Predictions of MultiTaskModel equal those of its run."""

import numpy as np
import pytest
import torch
from pandas import DataFrame
from tolerances import assert_near, model_terms

import cli
from common.errors import Notice, RunError
from serving import MultiTaskModel
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


def test_each_distinct_text_is_encoded_once(model, monkeypatch):
    seen = []
    encode = model.model.bi_encoder.encode_window

    def counted(encoder, tokens, **settings):
        seen.append(len(tokens))
        return encode(encoder, tokens, **settings)

    monkeypatch.setattr(model.model.bi_encoder, "encode_window", counted)
    model.predict([("A cat.", "a dog"), ("a cat.", "A dog"), ("A dog", "a cat.")], ["sst", "qqp"])
    assert seen == [2]


def test_a_stream_is_the_same_in_windows(model, monkeypatch):
    monkeypatch.setattr("serving.model.WINDOW", 4)
    pairs = list(zip(*dev("sts").texts, strict=True))[:10]
    windows = list(model.predict_stream(iter(pairs)))
    assert [len(rows) for rows, _ in windows] == [4, 4, 2]
    values = np.concatenate([found["sts"].values for _, found in windows])
    assert_near(values, model.predict(pairs)["sts"].values, model_terms(model))
    with pytest.raises(RunError, match="row 2: expected as many texts as in the rows before"):
        list(model.predict_stream(iter([("a", "b"), ("c",)])))


def test_empty_input_and_bfloat16(model):
    found = model.predict([])["sst"]
    assert found.labels == []
    assert found.probabilities.shape == (0, 5)
    pairs = list(zip(*dev("sts").texts, strict=True))[:20]
    one, other = (model.predict(pairs, ["sts"], precision)["sts"] for precision in ("fp32", "bf16"))
    np.testing.assert_allclose(one.values, other.values, atol=0.1)


INVALID = [
    (["a"], {"tasks": ["mnli"]}, "expected tasks of sst, qqp, sts, own, found mnli"),
    (["a"], {"tasks": ["qqp"]}, "qqp: expected pairs of texts, found single ones"),
    (["a"], {"tasks": []}, "tasks: expected some of sst, qqp, sts, own, or None"),
    ("a", {}, "found one string"),
    ({"a": 1}, {}, "expected a list of texts or pairs, found a"),
    (DataFrame({"one": ["a"], "two": ["b"]}), {}, "expected a list of texts or pairs, found a"),
    ([("a", "b"), {"a", "b"}], {}, "found a set at index 1, counted from 0"),
    (["a", float("nan")], {}, "expected strings, found nan at index 1"),
    ([("a", None)], {}, "expected strings, found None at index 0"),
    (["a", ("b", "c")], {}, "found both"),
    (["a"], {"precision": "fp8"}, "precision"),
]


@pytest.mark.parametrize(("rows", "options", "line"), INVALID)
def test_invalid_requests_are_refused(model, rows, options, line):
    with pytest.raises((RunError, TypeError, ValueError), match=line):
        model.predict(rows, **options)


def test_invalid_rows_of_a_stream_and_folders_are_refused(model, tmp_path):
    for rows, line in (
        (["ab", "cd"], "row 1: expected a tuple of texts, found one string"),
        ([("a", "b", "c")], "row 1: expected a text or a pair, found 3 texts"),
        ([("a",), (None,)], "row 2: expected strings, found None"),
    ):
        with pytest.raises((TypeError, ValueError), match=line):
            list(model.predict_stream(rows))
    with pytest.raises(RunError, match=r"expected a run with a config\.json"):
        MultiTaskModel.load(tmp_path)


def test_the_callers_default_type_does_not_count(model):
    expected = model.predict(["a film to love"], ["sst"])["sst"].probabilities
    torch.set_default_dtype(torch.float64)
    try:
        found = model.predict(["a film to love"], ["sst"])["sst"].probabilities
        embeddings = model.encode(["a film to love"])
    finally:
        torch.set_default_dtype(torch.float32)
    assert np.array_equal(found, expected)
    assert embeddings.dtype == np.float32


def test_copies_follow_a_change_of_the_weights(trained):
    model, pairs = MultiTaskModel.load(trained), [("a film to love", "a film to hate")]

    def scores():
        (window,) = model.predict_stream(iter(pairs), ["sts"], precision="bf16")
        once = model.predict(pairs, ["sts"], precision="bf16")["sts"].values
        assert np.array_equal(window[1]["sts"].values, once)
        return once

    first, copy = scores(), model.encoder("bf16")
    assert np.array_equal(scores(), first)
    assert model.encoder("bf16") is copy
    with torch.no_grad():
        model.model.encoder.embeddings.word.weight.data.mul_(-3)
    assert not np.array_equal(scores(), first)


def test_a_head_that_pools_tokens_itself(tmp_path):
    run = tmp_path / "run"
    flags = ("--mode", "single", "--task", "sst", "--objective", "lacon-fusion", "--epochs", "1")
    size = ("--limit", "40", "--encoder", "tiny", "--batch-size", "10")
    assert cli.main([*flags, *size, "--output", str(run)]) == 0
    kept = read_scores(run / "predictions" / scores_name("sst", "dev"))
    model = MultiTaskModel.load(run)
    found = model.predict(dev("sst").texts[0])["sst"]
    assert_near(found.probabilities, kept.values, model_terms(model))


def test_truncated_rows_are_counted_in_one_warning(model, monkeypatch):
    monkeypatch.setattr("serving.model.WINDOW", 2)
    limit = model.model.bi_encoder.tokenizer.max_tokens
    half, longer = "a " * (limit // 2), "a " * limit
    # The first is too long for the head of joint pairs only.
    rows = [(half, half), ("a", "b"), ("a", longer), (longer, longer), ("a", "b")]
    expected = f"3 of 5 rows are longer than {limit} tokens and were cut"
    for predict in (model.predict, lambda rows: list(model.predict_stream(iter(rows)))):
        with pytest.warns(Notice) as caught:
            predict(rows)
        assert [str(one.message) for one in caught] == [expected]
        assert caught[0].filename == __file__
    with pytest.warns(Notice, match="1 of 5 rows is longer"):
        model.predict(rows, ["sst"])
