"""Regularisation terms of a task's loss, a file each."""

from multitask.regularizers.base import Regularizer
from multitask.regularizers.distillation import Distillation
from multitask.regularizers.smart import Smart

__all__ = ["Distillation", "Regularizer", "Smart"]
