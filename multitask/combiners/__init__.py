"""Methods that combine the gradients of several objectives, a file for each group.

>>> from multitask.combiners import PCGrad
>>> RunConfig(tasks=("sst", "sts"), combiner=PCGrad())
"""

from __future__ import annotations

from multitask.combiners.base import Combined, Combiner, CombinerState, Setup
from multitask.combiners.dynamic_average import DynamicAverage
from multitask.combiners.epo import EPO, epo_weights
from multitask.combiners.famo import FAMO
from multitask.combiners.geometric_mean import GeometricMean
from multitask.combiners.gramian import (
    IMTLG,
    AlignedMTL,
    CAGrad,
    DualProj,
    FairGrad,
    NashMTL,
    UPGrad,
)
from multitask.combiners.mgda import MGDA
from multitask.combiners.nested import Nested, nested, pull_push_weights
from multitask.combiners.pcgrad import PCGrad, pcgrad_weights
from multitask.combiners.random_weights import RandomWeights
from multitask.combiners.sum import LinearScalarization, Sum
from multitask.combiners.tchebycheff import SmoothTchebycheff
from multitask.combiners.uncertainty import Uncertainty

__all__ = [
    "EPO",
    "FAMO",
    "IMTLG",
    "MGDA",
    "AlignedMTL",
    "CAGrad",
    "Combined",
    "Combiner",
    "CombinerState",
    "DualProj",
    "DynamicAverage",
    "FairGrad",
    "GeometricMean",
    "LinearScalarization",
    "NashMTL",
    "Nested",
    "PCGrad",
    "RandomWeights",
    "Setup",
    "SmoothTchebycheff",
    "Sum",
    "UPGrad",
    "Uncertainty",
    "epo_weights",
    "nested",
    "pcgrad_weights",
    "pull_push_weights",
]
