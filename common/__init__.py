"""Utilities for all packages: settings, errors, files, progress, the entry point."""

from minbert_multitask import check_packages

check_packages(__name__)
