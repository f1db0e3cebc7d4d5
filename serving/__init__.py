"""Use of trained models: prediction, search, export and a demo.

>>> from serving import MultiTaskModel
>>> model = MultiTaskModel.load("runs/my-run")
>>> model.predict(["a film to love"])["sst"].labels
['very positive']
"""

from typing import TYPE_CHECKING, Any

from minbert_multitask import check_packages

check_packages(__name__)

if TYPE_CHECKING:
    from serving.model import MultiTaskModel
    from serving.prediction import Prediction

__all__ = ["MultiTaskModel", "Prediction"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that importing the package does not load PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module 'serving' has no attribute {name!r}")
    from serving import model, prediction

    return getattr(model if name == "MultiTaskModel" else prediction, name)
