"""Further training of the encoder before any task: on sentences, pairs, or classes of texts."""

from __future__ import annotations

from multitask.config import RunConfig

# What pre-training takes where nothing else is said: batches of 64 and one epoch (Gao et al., 2021,
# section 4).
DEFAULTS = RunConfig(mode="pretrain", tasks=(), batch_size=64, epochs=1, lr=3e-5)
