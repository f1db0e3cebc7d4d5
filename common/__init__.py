"""Utilities for all packages: settings, errors, files, progress, the entry point."""

__version__ = "0.1.0"
