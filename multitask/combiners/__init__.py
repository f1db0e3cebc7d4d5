"""Methods that combine the gradients of several objectives, a file for each group.

>>> from multitask.combiners import PCGrad
>>> RunConfig(tasks=("sst", "sts"), combiner=PCGrad())
"""

from multitask.combiners.base import Combined, Combiner, CombinerState, Setup
from multitask.combiners.epo import EPO, epo_weights
from multitask.combiners.famo import FAMO
from multitask.combiners.gramian import (
    IMTLG,
    MGDA,
    AlignedMTL,
    CAGrad,
    DualProj,
    FairGrad,
    NashMTL,
    UPGrad,
)
from multitask.combiners.loss_weights import (
    DynamicAverage,
    GeometricMean,
    LinearScalarization,
    RandomWeights,
    SmoothTchebycheff,
    Sum,
    Uncertainty,
)
from multitask.combiners.pcgrad import PCGrad, pcgrad_weights

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
    "PCGrad",
    "RandomWeights",
    "Setup",
    "SmoothTchebycheff",
    "Sum",
    "UPGrad",
    "Uncertainty",
    "epo_weights",
    "pcgrad_weights",
]
