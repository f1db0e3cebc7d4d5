"""Terms that a task's loss gets beside its own: settings.py names them, one file computes each."""

from multitask.regularizers.settings import Proximal, RDrop, Regularizer, Smart

__all__ = ["Proximal", "RDrop", "Regularizer", "Smart"]
