"""Regularisation terms of a task's loss: their settings in settings.py, one file for each."""

from multitask.regularizers.settings import Proximal, RDrop, Regularizer, Smart

__all__ = ["Proximal", "RDrop", "Regularizer", "Smart"]
