"""Estimators with the interface of scikit-learn: an encoder with one head, trained by `fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from common.errors import OtherRunError
from common.settings import short
from multitask.control import RunControl
from multitask.settings.config import RunConfig, as_mapping, merged
from serving.empty_texts import is_empty
from serving.export import packed, unpacked
from serving.model import MultiTaskModel, Texts
from serving.prediction import Prediction
from serving.stored_rows import HEAD, Targets, holds_lists, several, stored_task

WIDTHS = (1, 2)  # columns of X
OWN_ARGUMENTS = {  # settings of a run that `settings` cannot have
    **{key: f"the argument {key}" for key in ("encoder", "epochs", "batch_size")},
    "seed": "the argument random_state",
    "mode": "single",
    "tasks": "the task of fit",
}


class SentenceEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of the estimators: their parameters, training, embeddings and pickling.

    Args:
        encoder: a named encoder, a folder or a hub id.
        epochs, batch_size: as in `multitask.RunConfig`.
        lr: learning rate of the encoder; None for the default of `RunConfig`.
        validation_fraction: share of the rows that selects the best epoch and is not trained on; 0
            trains on all rows and keeps the last epoch. Rows with equal texts stay on one side.
        settings: further settings of `RunConfig` by name, such as `{"freeze_encoder": True}`.
        folder: a folder to keep the run (`run`) and its rows (`data`) in. By default no file is
            left behind. It keeps one run, so that it does not suit a search over settings.
        random_state: random seed, a `numpy.random.RandomState`, or None for a new seed in each fit.
        verbose: print what a run prints.

    Fits in several threads of one process are not supported: scikit-learn uses processes.
    """

    def __init__(
        self,
        encoder: str = RunConfig.encoder,
        epochs: int = RunConfig.epochs,
        batch_size: int = RunConfig.batch_size,
        lr: float | None = None,
        validation_fraction: float = 0.0,
        settings: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        random_state: Any = RunConfig.seed,
        verbose: bool = False,
    ) -> None:
        self.encoder = encoder
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.folder = folder
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803 (scikit-learn's name)
        """Train on n texts, an array (n,) or (n, 1), or on n pairs (n, 2); `y` has n labels.

        Raise ValueError or TypeError, in one line, for texts that are missing or empty, labels of
        another kind, and wrong settings.
        """
        rows = self.texts(X, reset=True)
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        check_consistent_length(rows, y)
        targets = self.targets(y)
        with TemporaryDirectory(prefix="minbert-") as temporary:
            place = Path(temporary if self.folder is None else self.folder)
            self.model_ = self.trained(rows, targets, place)
        self._n_features_out = self.model_.model.bi_encoder.width * len(rows[0])
        return self

    def trained(self, rows: list[tuple[str, ...]], targets: Targets, place: Path) -> MultiTaskModel:
        """Train in `place/run` on rows that are stored in `place/data`."""
        from multitask.run import complete

        seed = self.random_state
        if seed is None or seed is np.random or isinstance(seed, np.random.RandomState):
            seed = check_random_state(seed).randint(2**31 - 1)
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
            line = f"expected a number from 0 to {2**32 - 1}, a numpy.random.RandomState or None"
            raise ValueError(f"random_state: {line}, found {short(self.random_state)}")
        if not isinstance(self.settings, Mapping | None):
            found = short(self.settings)
            raise TypeError(f"settings: expected a mapping of names to values, found {found}")
        if wrong := (self.settings or {}).keys() & OWN_ARGUMENTS.keys():
            key = min(wrong)
            line = f"expected {key} as {OWN_ARGUMENTS[key]}, found it among the settings"
            raise ValueError(f"settings: {line}")
        optimizer = as_mapping((self.settings or {}).get("optimizer"))
        if self.lr is not None and "lr" in optimizer:
            raise ValueError("settings: expected lr as the argument lr or here, found both")
        held = self.validation_fraction
        if not 0 <= held < 1:
            raise ValueError(f"validation_fraction: expected 0 or more, below 1, found {held!r}")
        for what, key, value in (("calibrate", "calibrate", True), ("keep best", "keep", "best")):
            if not held and (self.settings or {}).get(key) == value:
                line = f"expected a validation_fraction above 0 for {what}, as it needs rows that"
                raise ValueError(f"settings: {line} are not trained on, found 0")
        task = stored_task(rows, targets, held, int(seed), place / "data")
        chosen: dict[str, Any] = (
            {"keep": "best"} if held else {"keep": "last", "evaluate_every": self.epochs}
        )
        chosen |= {} if self.lr is None else {"optimizer": {"lr": self.lr}}
        config = RunConfig(
            mode="single",
            tasks=(task,),
            encoder=self.encoder,
            epochs=self.epochs,
            batch_size=self.batch_size,
            seed=int(seed),
            **merged(chosen, self.settings or {}),
        )
        control = RunControl(every_epoch=False, tensorboard=False, verbose=self.verbose)
        try:
            if self.verbose:
                complete(config, place / "run", control)
            else:  # without lines and progress bars
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                    complete(config, place / "run", control)
        except OtherRunError as error:
            line = "expected a new folder, or that of a fit with the same rows and settings"
            raise ValueError(f"folder: {line}, found another fit in {place}") from error
        return MultiTaskModel.load(place / "run", config.device)

    def targets(self, y: Any) -> Targets:
        """Return the labels as fields of a file, and remember what `predict` returns."""
        raise NotImplementedError

    def predicted(self, X: Any) -> Prediction:  # noqa: N803
        """Return the predictions of the head."""
        check_is_fitted(self)
        rows = self.texts(X, reset=False)
        texts: Texts = [row[0] for row in rows] if len(rows[0]) == 1 else rows  # type: ignore
        return self.model_.predict(texts, [HEAD])[HEAD]

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the embeddings (n, H) of texts, or of both texts of pairs (n, 2H), in float32."""
        check_is_fitted(self)
        columns = zip(*self.texts(X, reset=False), strict=True)
        task = HEAD if self.model_.model.branches else None
        return np.hstack([self.model_.encode(list(one), task=task) for one in columns])

    def texts(self, X: Any, reset: bool) -> list[tuple[str, ...]]:  # noqa: N803
        """Return the rows of X; raise ValueError or TypeError for anything but texts."""
        if isinstance(X, list | tuple) or getattr(X, "ndim", 2) == 1:
            X = np.asarray(X, object)  # noqa: N806
            X = X.reshape(-1, 1) if X.ndim == 1 else X  # noqa: N806
        found = validate_data(self, X, dtype=object, reset=reset)
        if found.shape[1] not in WIDTHS:
            raise ValueError(f"X: expected texts or pairs of texts, found {found.shape[1]} columns")
        for number, row in enumerate(found):
            for text in row:
                if not isinstance(text, str):
                    raise TypeError(f"X: expected texts, found {short(text)} in row {number}")
                if is_empty(text):
                    raise ValueError(f"X: expected texts, found an empty one in row {number}")
        return [tuple(row) for row in found]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False  # of numbers
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = packed(self.model_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            state = {**state, "model_": unpacked(state["model_"])}
        super().__setstate__(state)


def check_one_type(labels: Sequence[Any] | np.ndarray) -> None:
    """Raise TypeError for texts among other labels, which are often missing ones, None or NaN."""
    others = [label for label in labels if not isinstance(label, str)]
    if 0 < len(others) < len(labels):
        found = f"found texts and {short(others[0])}"
        raise TypeError(f"y: expected labels of one type, {found}")


class SentenceClassifier(ClassifierMixin, SentenceEstimator):
    """A classifier of texts or of pairs of texts, with one class or several labels for each.

    >>> classifier = SentenceClassifier(epochs=3).fit(["a film to love", "too long"], ["up", "no"])
    >>> classifier.predict(["a play to love"])
    array(['up'], dtype='<U2')

    Several labels are a matrix (n, C) of 0 and 1, or n lists of labels; `predict` returns the same
    form. scikit-learn's own metrics, as in `cross_val_score(scoring=...)`, need a matrix. The
    parameters are those of `serving.estimator.SentenceEstimator`.

    Attributes:
        classes_: the classes or labels, sorted (C,); column numbers for a matrix.
        model_: the trained `serving.MultiTaskModel`.
    """

    def targets(self, y: Any) -> Targets:
        self.binarizer_: MultiLabelBinarizer | None = None
        if holds_lists(y):
            check_one_type([label for row in y for label in row])
            self.binarizer_ = MultiLabelBinarizer().fit(y)
            self.classes_ = self.binarizer_.classes_
            return several(self.binarizer_.transform(y), self.classes_)
        check_one_type(np.asarray(y, object).ravel())
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if type_of_target(y) == "multilabel-indicator":
            self.classes_ = np.arange(y.shape[1])
            return several(y, self.classes_)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            found = ", ".join(map(str, self.classes_))
            raise ValueError(f"y: expected two classes or more, found one class: {found}")
        names = [str(one) for one in self.classes_]
        return Targets("class", [names[one] for one in which], {"labels": names})

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of each row (n,), or the labels above one half."""
        values = self.predicted(X).values
        if self.binarizer_ is not None:
            return self.binarizer_.inverse_transform(values)
        return values if values.ndim > 1 else self.classes_[values]

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probabilities (n, C) of `classes_`; those of several labels are separate."""
        found = self.predicted(X).probabilities
        assert found is not None, "classes have probabilities"
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the share of rows with the right class, or with exactly the right labels."""
        found = self.predict(X)
        if self.binarizer_ is not None:
            y, found = map(self.binarizer_.transform, (y, found))
        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class SentenceRegressor(RegressorMixin, SentenceEstimator):
    """A regressor with a number for each text or pair of texts.

    >>> pairs = [("a cat sleeps", "a cat is asleep"), ("the sun", "a train")]
    >>> SentenceRegressor(epochs=3).fit(pairs, [5.0, 0.5]).predict(pairs).shape
    (2,)

    The parameters are those of `serving.estimator.SentenceEstimator`.
    """

    def targets(self, y: Any) -> Targets:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=2)
        numbers = column_or_1d(y, warn=True).tolist()
        if len(set(numbers)) < 2:
            raise ValueError(f"y: expected two different numbers or more, found {numbers[0]:g}")
        return Targets("number", numbers, {})

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return a number for each row (n,)."""
        return np.asarray(self.predicted(X).values, np.float64)
