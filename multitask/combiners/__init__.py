"""Methods that combine the gradients of several objectives, a file for each group.

>>> RunConfig(tasks=("sst", "sts"), combiner="pcgrad")
"""

from multitask.combiners import epo, gramian, loss_weights, pcgrad
from multitask.combiners.base import Combined, Combiner
from multitask.combiners.epo import epo_weights
from multitask.combiners.pcgrad import pcgrad_weights

__all__ = ["Combined", "Combiner", "epo_weights", "pcgrad_weights"]
__all__ += ["epo", "gramian", "loss_weights", "pcgrad"]  # whose methods are now known
