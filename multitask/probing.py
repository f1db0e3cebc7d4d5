"""Linear probe, then fine-tune: the heads learn alone before the encoder moves.

A fresh head sends the encoder gradients that are noise; with the encoder frozen for the first
epochs, its features are not distorted by them (Kumar et al., 2022).
"""

from __future__ import annotations


def probing(epoch: int, probe_epochs: int) -> bool:
    """Whether the encoder is frozen in this epoch, counted from 1."""
    return epoch <= probe_epochs


def stage(step: int, probe_steps: int, total: int) -> tuple[int, int]:
    """Step (from 0) within its stage and steps of the stage: each has its own learning rates."""
    if step < probe_steps:
        return step, probe_steps
    return step - probe_steps, total - probe_steps
