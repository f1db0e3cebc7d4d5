"""The training loop: batches of a step, their losses and gradients, epochs and evaluation."""
