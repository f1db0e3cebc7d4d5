"""The estimators follow scikit-learn's protocol, and equal the runs that they train."""

import io
import json
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data
from tolerances import assert_near, encoder_terms

from multitask import RunConfig, task, train
from serving import MultiTaskModel, SentenceClassifier, SentenceRegressor
from serving.stored_rows import Targets, stored_task

TEXTS = [f"a {word} stay, night {night}" for night in range(20) for word in ("lovely", "dreary")]
PAIRS = list(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True))
LABELS = ["good", "bad"] * 20
SMALL = {"encoder": "tiny", "epochs": 1}
SEEDS = f"random_state: expected a number from 0 to {2**32 - 1}, a numpy.random.RandomState or None"


class TextsOfNumbers:
    """Accept arrays of numbers, as scikit-learn's checks use them, and read them as texts."""

    columns = 1

    def texts(self, X, reset):  # noqa: N803
        found = validate_data(self, X, dtype=np.float64, reset=reset)
        return [(" ".join(f"{value:.2f}" for value in row),) * self.columns for row in found]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # numbers as words, an encoder with random weights
        return tags


class NumberClassifier(TextsOfNumbers, SentenceClassifier):
    pass


class NumberRegressor(TextsOfNumbers, SentenceRegressor):
    columns = 2  # a number is predicted for pairs


# Checks that scikit-learn itself skips, and why.
SKIPPED = {
    "check_array_api_input": "the environment variable SCIPY_ARRAY_API is not set",
    "check_classifiers_multilabel_output_format_decision_function": "there is no such method",
}
# Checks with bounds for float64: one of them may pass by chance.
ROUNDING = "other batches differ in the last bits of float32, the bound is 1e-7"
EXPECTED = {
    "check_methods_subset_invariance": ROUNDING,
    "check_methods_sample_order_invariance": ROUNDING,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [NumberClassifier, NumberRegressor])
def test_all_checks_of_scikit_learn_pass(kind):
    found = check_estimator(
        kind(**SMALL, batch_size=64), on_fail=None, on_skip=None, expected_failed_checks=EXPECTED
    )
    failed = [one for one in found if one["status"] not in ("passed", "skipped", "xfail")]
    assert not failed, failed
    assert sum(one["status"] == "passed" for one in found) > 40
    assert {one["check_name"] for one in found if one["status"] == "skipped"} <= SKIPPED.keys()


def test_rows_do_not_depend_on_their_batch(classifier):
    """What the checks of EXPECTED ask for, with the bound of float32."""
    whole = classifier.predict_proba(TEXTS)
    alone = np.concatenate([classifier.predict_proba([text]) for text in TEXTS[::-1]])[::-1]
    config = classifier.model_.model.bi_encoder.encoder.config
    assert_near(alone, whole, encoder_terms(config, config.max_tokens))


def test_a_classifier_equals_the_run_of_its_settings(tmp_path):
    mood = task(TEXTS, LABELS, name="label", folder=tmp_path, classes=["bad", "good"])
    own = {"train": mood.train, "dev": mood.train}
    rows = ",".join(f"{key}={file}" for key, file in list(own.items())[1:])
    described = f"label={own['train']}:type=classification,text=text,label=label,{rows}"
    config = RunConfig(tasks=(task(described),), keep="last", evaluate_every=2, epochs=2)
    config = config.changed(encoder="tiny")
    expected = train(config, tmp_path / "run").model.predict(TEXTS)["label"]
    found = SentenceClassifier(encoder="tiny", epochs=2).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(found.predict_proba(TEXTS), expected.probabilities)
    np.testing.assert_array_equal(found.predict(TEXTS), expected.labels)
    np.testing.assert_array_equal(found.classes_, ["bad", "good"])
    assert found.score(TEXTS, LABELS) == np.mean(np.array(expected.labels) == LABELS)
    assert found.transform(TEXTS).shape == (40, 32)


@pytest.mark.parametrize("rows", [TEXTS, PAIRS], ids=["texts", "pairs"])
def test_a_regressor_equals_the_run_of_its_settings(rows, tmp_path):
    numbers = np.linspace(2, 4, 40)
    several = [(row,) if isinstance(row, str) else row for row in rows]
    stored = stored_task(several, Targets("number", numbers.tolist(), {}), 0, 0, tmp_path)
    config = RunConfig(tasks=(stored,), keep="last", evaluate_every=2, epochs=2, encoder="tiny")
    expected = train(config, tmp_path / "run").model.predict(rows)["label"].values
    found = SentenceRegressor(encoder="tiny", epochs=2).fit(rows, numbers)
    np.testing.assert_array_equal(found.predict(rows), expected)
    rest = ((numbers - expected) ** 2).sum() / ((numbers - numbers.mean()) ** 2).sum()
    assert found.score(rows, numbers) == pytest.approx(1 - rest)
    assert np.ptp(expected) > 0


@pytest.fixture(scope="module")
def classifier():
    return SentenceClassifier(**SMALL).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    "texts",
    [
        np.array(TEXTS),
        np.array(TEXTS, object).reshape(-1, 1),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="string"),
        pd.DataFrame({"text": TEXTS}),
        tuple(TEXTS),
    ],
    ids=["array", "column", "series", "strings", "frame", "tuple"],
)
def test_texts_come_in_any_container(classifier, texts):
    plain = SentenceClassifier(**SMALL).texts(TEXTS, reset=True)
    assert SentenceClassifier(**SMALL).texts(texts, reset=True) == plain
    if not isinstance(texts, pd.DataFrame):  # the classifier has seen no names of columns
        found = classifier.predict_proba(texts)
        np.testing.assert_array_equal(found, classifier.predict_proba(TEXTS))


def test_a_frame_and_a_series_train_as_lists_do(classifier):
    frame = pd.DataFrame({"text": TEXTS})
    found = SentenceClassifier(**SMALL).fit(frame, pd.Series(LABELS)).predict_proba(frame)
    np.testing.assert_array_equal(found, classifier.predict_proba(TEXTS))


@pytest.mark.parametrize(
    "labels", [[3, 7], [1.0, 2.0], [True, False], ["2", "10"], [" a", "b, |c"]]
)
def test_classes_keep_their_type(labels):
    found = SentenceClassifier(**SMALL).fit(TEXTS, labels * 20)
    np.testing.assert_array_equal(found.classes_, sorted(labels))
    assert found.predict(TEXTS).dtype == np.array(labels).dtype
    assert set(found.predict(TEXTS)) <= set(labels)


def test_pairs_have_classes_numbers_and_joined_embeddings():
    found = SentenceClassifier(**SMALL).fit(PAIRS, LABELS)
    assert found.predict_proba(pd.DataFrame(PAIRS)).shape == (40, 2)
    assert found.transform(PAIRS).shape == (40, 64)
    assert list(found.get_feature_names_out()[:2]) == ["sentenceclassifier0", "sentenceclassifier1"]
    np.testing.assert_array_equal(found.transform(PAIRS)[1:, :32], found.transform(PAIRS)[:-1, 32:])
    numbers = SentenceRegressor(**SMALL).fit(PAIRS, np.linspace(2, 4, 40))
    assert ((numbers.predict(PAIRS) >= 2) & (numbers.predict(PAIRS) <= 4)).all()
    with pytest.raises(ValueError, match="X has 1 features, but SentenceRegressor is expecting 2"):
        numbers.predict(TEXTS)


def test_several_labels_are_lists_or_a_matrix():
    lists = [["noise|loud", "heat"], [], ["noise|loud"], ["heat"]] * 10
    matrix = np.array([[1, 1], [0, 0], [0, 1], [1, 0]] * 10)
    by_lists, by_matrix = (SentenceClassifier(**SMALL).fit(TEXTS, y) for y in (lists, matrix))
    assert list(by_lists.classes_) == ["heat", "noise|loud"]
    assert list(by_matrix.classes_) == [0, 1]
    np.testing.assert_array_equal(by_lists.predict_proba(TEXTS), by_matrix.predict_proba(TEXTS))
    found = by_matrix.predict(TEXTS)
    np.testing.assert_array_equal(found, by_matrix.predict_proba(TEXTS) > 0.5)
    names = [tuple(by_lists.classes_[row == 1]) for row in found]
    assert by_lists.predict(TEXTS) == names
    assert by_lists.score(TEXTS, lists) == by_matrix.score(TEXTS, matrix)
    assert by_lists.score(TEXTS, names) == 1


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
    features = make_pipeline(SentenceClassifier(**SMALL), LogisticRegression())
    assert features.fit(TEXTS, LABELS).predict(TEXTS).shape == (40,)
    assert list(tmp_path.iterdir()) == []


def test_pickles_and_clones(classifier):
    expected = classifier.predict_proba(TEXTS)
    file = io.BytesIO()
    joblib.dump(classifier, file)
    file.seek(0)
    for found in (joblib.load(file), pickle.loads(pickle.dumps(classifier))):
        np.testing.assert_array_equal(found.predict_proba(TEXTS), expected)
        assert found.get_params() == classifier.get_params()
    copy = clone(classifier).set_params(epochs=2)
    assert (copy.epochs, classifier.epochs) == (2, 1)
    with pytest.raises(NotFittedError):
        copy.predict(TEXTS)


def test_a_folder_keeps_the_run_and_its_scores_of_held_out_rows(tmp_path):
    kept = SentenceClassifier(**SMALL, folder=tmp_path / "kept", validation_fraction=0.25)
    kept.fit(TEXTS, LABELS)
    model = MultiTaskModel.load(tmp_path / "kept" / "run")
    assert list(kept.predict(TEXTS)) == model.predict(TEXTS)["label"].labels
    counts = {file.name[:3]: len(file.read_text().splitlines()) for file in kept_rows(tmp_path)}
    assert counts == {"tra": 30, "dev": 10}
    kept.fit(TEXTS, LABELS)  # opens the finished run
    with pytest.raises(ValueError, match="expected a new folder, or that of a fit"):
        kept.set_params(epochs=2).fit(TEXTS, LABELS)


def kept_rows(folder):
    return (folder / "kept" / "data").iterdir()


def test_equal_texts_are_held_out_together(tmp_path):
    texts = [f"a stay{'!' * (row // 20)} !of {row % 20} nights" for row in range(80)]
    kept = SentenceClassifier(**SMALL, folder=tmp_path / "kept", validation_fraction=0.25)
    kept.fit(texts, LABELS * 2)
    rows = {
        file.name[:3]: list(map(json.loads, file.read_text().splitlines()))
        for file in kept_rows(tmp_path)
    }
    nights = {name: [row["text"].split("!")[-1] for row in found] for name, found in rows.items()}
    assert {name: len(found) for name, found in nights.items()} == {"tra": 60, "dev": 20}
    assert set(nights["tra"]).isdisjoint(nights["dev"])


TWO = (["a", "b"], ["x", "y"])


@pytest.mark.parametrize(
    ("changed", "texts", "labels", "expected"),
    [
        ({}, ["a", None], ["x", "y"], "X: expected texts, found None in row 1"),
        ({}, ["a", "  "], ["x", "y"], "X: expected texts, found an empty one in row 1"),
        ({}, [["a", "b", "c"]] * 2, ["x", "y"], "texts or pairs of texts, found 3 columns"),
        ({}, ["a", "b"], ["x"], "inconsistent numbers of samples"),
        ({}, ["a", "b"], ["x", "x"], "y: expected two classes or more, found one class: x"),
        ({}, ["a", "b"], [0.5, 0.25], "Unknown label type: continuous"),
        ({}, ["a", "b"], None, "SentenceClassifier requires y to be passed"),
        ({}, ["a", "b"], ["x", pd.NA], "y: expected labels of one type, found texts and <NA>"),
        ({}, ["a", "b"], [["x"], ["z", None]], "y: expected labels .*, found texts and None"),
        ({}, ["a", "b"], [["x"], [""]], "labels: expected none with .* blank, found ''"),
        ({"epochs": 0}, *TWO, "epochs: Expected `int` >= 1"),
        ({"settings": {"epoch": 3}}, *TWO, "epoch"),
        ({"settings": [("seed", 1)]}, *TWO, "settings: expected a mapping"),
        ({"settings": {"seed": 3}}, *TWO, "seed as the argument random_state"),
        ({"settings": {"optimizer": {"lr": 1}}, "lr": 1}, *TWO, "lr as the argument lr"),
        ({"random_state": -1}, *TWO, f"{SEEDS}, found -1"),
        ({"settings": {"keep": "best"}}, *TWO, "above 0 for keep best, as"),
        ({"validation_fraction": 1}, *TWO, "validation_fraction: expected 0"),
        ({"validation_fraction": 0.9}, *TWO, "more rows than are held out"),
        ({"validation_fraction": 0.5}, ["a", "A!"], ["x", "y"], "texts with different letters"),
    ],
)
def test_invalid_input_is_refused_in_one_line(changed, texts, labels, expected):
    with pytest.raises((ValueError, TypeError), match=expected) as caught:
        SentenceClassifier(**{**SMALL, **changed}).fit(texts, labels)
    assert "\n" not in str(caught.value)
