"""Methods that combine the gradients of several objectives, a file for each group.

>>> from multitask.combiners import PCGrad
>>> RunConfig(tasks=("sst", "sts"), combiner=PCGrad())
"""

from multitask.combiners.base import Combined, Combiner
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
    LinearScalarization,
    RandomWeights,
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
    "DualProj",
    "FairGrad",
    "LinearScalarization",
    "NashMTL",
    "PCGrad",
    "RandomWeights",
    "Sum",
    "UPGrad",
    "Uncertainty",
    "epo_weights",
    "pcgrad_weights",
]
