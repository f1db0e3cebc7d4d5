"""Use of trained models: prediction, embeddings, export, a server, and an estimator.

>>> from serving import load
>>> model = load("runs/my-run")
>>> model.predict(["a film to love"])["sst"].labels
['very positive']
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serving.estimator import SentenceClassifier
    from serving.model import MultiTaskModel, load
    from serving.prediction import Prediction

__all__ = ["MultiTaskModel", "Prediction", "SentenceClassifier", "load"]
PLACES = {
    **dict.fromkeys(("MultiTaskModel", "load"), "model"),
    "Prediction": "prediction",
    "SentenceClassifier": "estimator",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that importing the package does not load PyTorch."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PLACES[name]}"), name)
