"""The estimator follows scikit-learn's protocol, and equals the run that it trains."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data
from tolerances import assert_near, encoder_terms

from multitask import RunConfig, task, train
from serving import SentenceClassifier

TEXTS = [f"a {word} stay, night {night}" for night in range(20) for word in ("lovely", "dreary")]
PAIRS = list(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True))
LABELS = ["good", "bad"] * 20
SMALL = {"encoder": "tiny", "epochs": 1}


class NumberClassifier(SentenceClassifier):
    """Accepts arrays of numbers, as scikit-learn's checks use them, and reads them as texts."""

    def texts(self, X, reset):  # noqa: N803
        found = validate_data(self, X, dtype=np.float64, reset=reset)
        return [(" ".join(f"{value:.2f}" for value in row),) for row in found]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.classifier_tags.poor_score = True  # numbers as words, an encoder of random weights
        return tags


# Other batches differ in the last bits of float32, and these checks have the bound 1e-7.
EXPECTED = dict.fromkeys(
    ("check_methods_subset_invariance", "check_methods_sample_order_invariance"), "float32"
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_checks_of_scikit_learn_pass():
    small = NumberClassifier(**SMALL, batch_size=64)
    found = check_estimator(small, on_fail=None, on_skip=None, expected_failed_checks=EXPECTED)
    failed = [one for one in found if one["status"] not in ("passed", "skipped", "xfail")]
    assert not failed, failed
    assert sum(one["status"] == "passed" for one in found) > 40
    skipped = {one["check_name"] for one in found if one["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # SCIPY_ARRAY_API is not set


def test_rows_do_not_depend_on_their_batch(classifier):
    """What the checks of EXPECTED ask for, with the bound of float32."""
    whole = classifier.predict_proba(TEXTS)
    alone = np.concatenate([classifier.predict_proba([text]) for text in TEXTS[::-1]])[::-1]
    config = classifier.model_.model.bi_encoder.encoder.config
    assert_near(alone, whole, encoder_terms(config, config.max_tokens))


def test_a_classifier_equals_the_run_of_its_settings(tmp_path):
    mood = task(TEXTS, LABELS, name="label", folder=tmp_path, classes=["bad", "good"])
    config = RunConfig(
        mode="single", tasks=(replace(mood, dev=mood.train),), encoder="tiny", epochs=2,
        keep="last", evaluate_every=2, optimizer={"lr": 1e-3},
    )  # fmt: skip
    expected = train(config, tmp_path / "run").model.predict(TEXTS)["label"]
    settings = {"optimizer": {"lr": 1e-3}}
    found = SentenceClassifier(encoder="tiny", epochs=2, settings=settings).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(found.predict_proba(TEXTS), expected.probabilities)
    np.testing.assert_array_equal(found.predict(TEXTS), expected.labels)
    np.testing.assert_array_equal(found.classes_, ["bad", "good"])
    assert found.score(TEXTS, LABELS) == np.mean(np.array(expected.labels) == LABELS)


@pytest.fixture(scope="module")
def classifier():
    return SentenceClassifier(**SMALL).fit(TEXTS, LABELS)


def test_texts_come_in_any_container(classifier):
    expected, column = classifier.predict_proba(TEXTS), np.array(TEXTS, object).reshape(-1, 1)
    several = np.array(TEXTS), column, pd.Series(TEXTS), pd.Series(TEXTS, dtype="string")
    for texts in (*several, tuple(TEXTS)):
        np.testing.assert_array_equal(classifier.predict_proba(texts), expected)
    frame = pd.DataFrame({"text": TEXTS})
    found = SentenceClassifier(**SMALL).fit(frame, pd.Series(LABELS)).predict_proba(frame)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "labels", [[3, 7], [1.0, 2.0], [True, False], ["2", "10"], [" a", "b, |c"]]
)
def test_classes_keep_their_type(labels):
    found = SentenceClassifier(**SMALL).fit(TEXTS, labels * 20)
    np.testing.assert_array_equal(found.classes_, sorted(labels))
    assert found.predict(TEXTS).dtype == np.array(labels).dtype
    assert set(found.predict(TEXTS)) <= set(labels)


def test_pairs_have_classes():
    found = SentenceClassifier(**SMALL).fit(PAIRS, LABELS)
    assert found.predict_proba(pd.DataFrame(PAIRS)).shape == (40, 2)
    with pytest.raises(ValueError, match="X has 1 features, but SentenceClassifier is expecting 2"):
        found.predict(TEXTS)


def test_it_works_in_pipelines_searches_and_cross_validation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    whole = make_pipeline(lower, SentenceClassifier(**SMALL))
    name = "sentenceclassifier__settings"
    grid = {name: [{"freeze_encoder": True}, {"optimizer": {"head_lr": 0.01}, "objective": "scl"}]}
    search = GridSearchCV(whole, grid, cv=2, scoring="accuracy").fit(TEXTS, LABELS)
    assert search.best_params_[name] in grid[name]
    assert search.predict(TEXTS).shape == (40,)
    assert cross_val_score(SentenceClassifier(**SMALL), TEXTS, LABELS, cv=2).shape == (2,)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("texts", "labels", "expected"),
    [
        (["a", None], ["x", "y"], "X: expected texts .*, found .*None.* in row 1"),
        (["a", "  "], ["x", "y"], "X: expected texts .*, none of them empty, .* in row 1"),
        ([["a", "b", "c"]] * 2, ["x", "y"], "X: expected texts or pairs of texts"),
        (["a", "b"], ["x", "x"], "y: expected two classes or more, found one class: x"),
    ],
)
def test_invalid_input_is_refused_in_one_line(texts, labels, expected):
    with pytest.raises((ValueError, TypeError), match=expected) as caught:
        SentenceClassifier(**SMALL).fit(texts, labels)
    assert "\n" not in str(caught.value)


def test_weights_of_examples_are_refused_with_what_there_is():
    with pytest.raises(TypeError, match=r"found sample_weight; settings=.'class_weights'"):
        SentenceClassifier(**SMALL).fit(TEXTS, LABELS, sample_weight=np.ones(40))
