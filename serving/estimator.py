"""An estimator with the interface of scikit-learn: an encoder with one head, trained by `fit`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from common.settings import short
from multitask.run import train
from multitask.settings.config import RunConfig, merged
from serving.model import load
from serving.prediction import Prediction
from tasks.own_tasks import task_from_lists

HEAD = "label"  # name of the task


class SentenceClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of texts or of pairs of texts, trained on all rows for a number of epochs.

    >>> classifier = SentenceClassifier(epochs=3).fit(["a film to love", "too long"], ["up", "no"])
    >>> classifier.predict(["a play to love"])
    array(['up'], dtype='<U2')

    Args:
        encoder: a named encoder, a folder or a hub id.
        epochs, batch_size: as in `multitask.RunConfig`.
        settings: further settings of `RunConfig` by name, `{"optimizer": {"lr": 1e-3}}`.
        random_state: random seed, a `numpy.random.RandomState`, or None for a new seed in each fit.

    Attributes:
        classes_: the classes, sorted (C,).
        model_: the trained `serving.MultiTaskModel`.
    """

    def __init__(
        self,
        encoder: str = RunConfig.encoder,
        epochs: int = RunConfig.epochs,
        batch_size: int = RunConfig.batch_size,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = RunConfig.seed,
    ) -> None:
        self.encoder = encoder
        self.epochs = epochs
        self.batch_size = batch_size
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **more: Any) -> SentenceClassifier:  # noqa: N803 (its name)
        """Train on n texts, an array (n,) or (n, 1), or on n pairs (n, 2); `y` has n classes."""
        if more:
            line = "settings={'class_weights': 'balanced'} gives weights to classes"
            raise TypeError(f"fit takes only X and y, found {', '.join(more)}; {line}")
        rows = self.texts(X, reset=True)
        if y is None:
            raise ValueError("SentenceClassifier requires y to be passed, but the target y is None")
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_consistent_length(rows, y)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y: expected two classes or more, found one class: {y[0]}")
        names, seed = [str(one) for one in self.classes_], self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        chosen = {"encoder": self.encoder, "epochs": self.epochs, "batch_size": self.batch_size}
        chosen |= {"seed": int(seed), "keep": "last", "evaluate_every": self.epochs}
        options = {"type": "classification", "classes": names}
        quiet = redirect_stdout(StringIO()), redirect_stderr(StringIO())
        with TemporaryDirectory(prefix="minbert-") as folder, quiet[0], quiet[1]:
            place = Path(folder)
            task = task_from_lists(rows, [names[one] for one in which], HEAD, place, options)
            tasks = (replace(task, dev=task.train),)
            config = RunConfig(mode="single", tasks=tasks, **merged(chosen, self.settings or {}))
            train(config, place / "run", tensorboard=False)
            self.model_ = load(place / "run", config.device)
        return self

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable class of each row (n,)."""
        found = self.predicted(X).index
        return np.asarray(self.classes_[found])

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probabilities (n, C) of `classes_`."""
        return np.asarray(self.predicted(X).probabilities)

    def predicted(self, X: Any) -> Prediction:  # noqa: N803
        check_is_fitted(self)
        return self.model_.predict(self.texts(X, reset=False), [HEAD])[HEAD]

    def texts(self, X: Any, reset: bool) -> list[tuple[str, ...]]:  # noqa: N803
        """Return the rows of X; raise ValueError for anything but texts."""
        if isinstance(X, list | tuple) or getattr(X, "ndim", 2) == 1:
            X = np.asarray(X, object)  # noqa: N806
            X = X.reshape(-1, 1) if X.ndim == 1 else X  # noqa: N806
        rows = [tuple(row) for row in validate_data(self, X, dtype=object, reset=reset)]
        for number, row in enumerate(rows):
            if not all(isinstance(text, str) and text.strip() for text in row) or len(row) > 2:
                found = f"found {short(row)} in row {number}"
                raise ValueError(
                    f"X: expected texts or pairs of texts, none of them empty, {found}"
                )
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False  # of numbers
        return tags
