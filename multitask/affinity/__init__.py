"""Estimates of which tasks help or hurt each other, from the gradients of one short joint run."""
